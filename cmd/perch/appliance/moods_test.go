package appliance_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"perch/agent"
	"perch/cmd/perch/appliancetest"
	"perch/event"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

const (
	moodTranscript = "testdata/mood.txtar"
	moodsOnly      = `{"type":"subscribe","events":["gesture","look_at","mood"]}`
	lightTool      = "self.robot.set_led_color"
)

// TestMoodReachesRobotSkinAndMQTT checks that an answer in unsure words leads to the same mood on the robot, at a skin
// and on MQTT, and that the mood fades. The file moodTranscript contains what each client received, in order and
// without times. PERCH_GOLDEN=rewrite rewrites the file.
//
// Three unsure sentences produce the maximum of the feeling uncertain, to which no gesture belongs. So the transcript
// does not depend on the speed of the machine.
func TestMoodReachesRobotSkinAndMQTT(t *testing.T) {
	t.Parallel()
	p := appliancetest.NewPeers(t)
	p.Words = []string{"[anim:wave]", " Perhaps it is three.", " Maybe it is four.", " Probably it is five."}
	c := appliancetest.WithBroker(t)
	c.Skins.Key = appliancetest.Key
	p.Use(&c)
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	mqtt, skin := h.Listen(), h.Watch(moodsOnly)
	robot := h.StartRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it"), Stay: true})
	h.Eventually("the skin sees it fade", func() bool { return faded(skinMoods(skin)) })
	h.Eventually("MQTT is told that it has faded", func() bool { return faded(mqttMoods(t, mqtt)) })
	h.Eventually("the robot's face and lights show nothing any more", func() bool {
		faces, lights := robotFaces(robot), robotLights(t, robot)
		return len(faces) > 1 && faces[len(faces)-1] == agent.Neutral.Name && len(lights) > 0 && lights[len(lights)-1] == "lights off"
	})
	h.Expect(http.StatusAccepted, `"ok":true`, http.MethodPost, "/api/agent-actions",
		`{"type":"look-at","payload":{"target":"user"},"session_id":"robot:a0b1c2d3e4f5"}`, "Authorization", "Bearer "+appliancetest.Key)
	h.Await(robot, "the head turns to the person", appliancetest.Match(func(m simrobot.HeadMoved) bool {
		return m.Yaw == 0 && m.Pitch == 30 && m.Speed == 250
	}))
	h.Eventually("the skin is told where it looks", func() bool { return len(framesOf(skin, "look_at")) > 0 })

	asSkin, asMQTT, asRobot := dominant(skinMoods(skin)), dominant(mqttMoods(t, mqtt)), robotFeels(robot, skinMoods(skin))
	for client, shown := range map[string][]string{"robot": asRobot, "skin": asSkin, "MQTT": asMQTT} {
		if want := []string{"neutral", "uncertain", "neutral"}; !slices.Equal(shown, want) {
			t.Errorf("by the %s it feels %v, not %v", client, shown, want)
		}
	}
	got := &txtar.Archive{
		Comment: []byte("A talk in which a mood is heard, seen and fades, as the robot, a skin and MQTT are shown it. What repeats is left out.\n"),
		Files: []txtar.File{
			{Name: "robot", Data: section(robotWords(robot), robotHead(robot), robotLights(t, robot), prefixed("face ", robotFaces(robot)),
				prefixed("feels ", asRobot))},
			{Name: "skin", Data: section(skinActs(skin), prefixed("feels ", asSkin))},
			{Name: "mqtt", Data: section(mqttActs(t, mqtt), prefixed("feels ", asMQTT))},
		}}
	golden(t, moodTranscript, got)
}

// emotes sends a viewer's action that sets a feeling of the robot.
func emotes(h *appliancetest.Appliance, trigger string) {
	h.T.Helper()
	h.Expect(http.StatusAccepted, `"ok":true`, http.MethodPost, "/api/agent-actions",
		`{"type":"emote","payload":{"trigger":"`+trigger+`","weight":1},"session_id":"robot:a0b1c2d3e4f5"}`,
		"Authorization", "Bearer "+appliancetest.Key)
}

// TestMoodOfARobotBetweenTurns checks that a robot shows a mood between turns with its face, its lights and its head.
func TestMoodOfARobotBetweenTurns(t *testing.T) {
	t.Parallel()
	c := appliancetest.Config()
	c.Skins.Key = appliancetest.Key
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools(robot.ID())
	emotes(h, "empathy")
	h.Await(robot, "its face shows what it feels", appliancetest.Match(func(f simrobot.EmotionShown) bool {
		return f.Emotion == agent.Emotion{Name: "loving"}.On("m5stack-stack-chan").Name
	}))
	h.Eventually("its lights glow", func() bool { return slices.Contains(robotLights(t, robot), "lights 10:1:6") })
	h.Await(robot, "its head leans to a side", appliancetest.Match(func(m simrobot.HeadMoved) bool {
		return m.Yaw >= 3 && m.Yaw <= 6 && m.Pitch == 15
	}))
}

// TestAJoinedChatWaves checks that a gesture in a text chat with a robot's agent is also made by the robot.
func TestAJoinedChatWaves(t *testing.T) {
	t.Parallel()
	p := appliancetest.NewPeers(t)
	p.Words = []string{"[anim:wave]", " Hello."}
	c := appliancetest.Config()
	c.Skins.Key = appliancetest.Key
	p.Use(&c)
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools(robot.ID())
	h.Expect(http.StatusOK, "[anim:wave] Hello.", http.MethodPost, "/v1/chat/completions",
		`{"model":"perch","messages":[{"role":"user","content":"hello"}]}`, "X-Session-Id", "robot:a0b1c2d3e4f5",
		"Authorization", "Bearer "+appliancetest.Key)
	h.Await(robot, "the robot waves", appliancetest.HeadAt(-18, 30))
}

// TestNoMoods checks that with moods turned off nothing about moods is published, and they change neither face, lights
// nor head. A gesture in the answer is still made.
func TestNoMoods(t *testing.T) {
	t.Parallel()
	p := appliancetest.NewPeers(t)
	p.Words = []string{"[anim:wave]", " Perhaps it is three.", " Maybe it is four.", " Probably it is five."}
	c := appliancetest.WithBroker(t)
	c.Skins.Key, c.Mood = appliancetest.Key, "off"
	p.Use(&c)
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	mqtt, skin := h.Listen(), h.Watch(moodsOnly)
	robot := h.StartRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it"), Stay: true})
	h.Await(robot, "its answer is over", func(e simrobot.Observation) bool { _, is := e.(simrobot.TurnEnded); return is })
	rests := appliancetest.HeadAt(0, 15)
	waved := h.Await(robot, "its head is back after the wave", rests)
	emotes(h, "empathy")
	// A mood would show before the bow ends.
	if status, body := h.Owner(http.MethodPost, "/api/v1/devices/a0b1c2d3e4f5/gesture", `{"name":"bow"}`); status != http.StatusAccepted {
		t.Fatal(status, body)
	}
	h.Eventually("its head is back after the bow", func() bool { at, _ := robot.LastTime(rests); return at.After(waved) })
	h.Eventually("MQTT is told of the bow", func() bool { return mqtt.Has(appliancetest.RobotTopic+"state", `"gesture":"bow"`) })
	if lines := robotHead(robot); !slices.Equal(lines, append(waveOfHead(), bowOfHead()...)) {
		t.Errorf("the head has moved:\n%s", strings.Join(lines, "\n"))
	}
	if lights := robotLights(t, robot); slices.Contains(lights, "lights 10:1:6") || slices.Contains(lights, "lights 6:0:10") {
		t.Errorf("the lights glow: %v", lights)
	}
	if faces := robotFaces(robot); slices.Contains(faces, "doubtful") {
		t.Errorf("the faces are %v", faces)
	}
	if all := framesOf(skin, "mood"); len(all) > 0 {
		t.Errorf("the skin is sent %v", all)
	}
	if mqtt.Mentions(appliancetest.RobotTopic + "mood") {
		t.Error("a mood is published over MQTT")
	}
	if all := moodEvents(t, h); len(all) > 0 {
		t.Errorf("on the bus are %v", all)
	}
}

func waveOfHead() []string {
	return []string{"head yaw 0 pitch 30", "head yaw -18 pitch 30", "head yaw 18 pitch 30", "head yaw -12 pitch 30", "head yaw 0 pitch 15"}
}

func bowOfHead() []string {
	return []string{"head yaw 0 pitch 30", "head yaw 0 pitch 5", "head yaw 0 pitch 15"}
}

// moodEvents returns the events so far that only moods cause.
func moodEvents(t *testing.T, h *appliancetest.Appliance) (all []event.Event) {
	t.Helper()
	r, last := h.Bus.ReadFrom(1), h.Bus.Seq()
	for seq := uint64(0); seq < last; {
		e := must.Value(r.Next(t.Context()))(t)
		seq = e.Seq
		switch ev := e.Event.(type) {
		case event.Mood:
			all = append(all, ev)
		case event.Gesture:
			if ev.By == event.ByMood {
				all = append(all, ev)
			}
		}
	}
	return all
}

// golden compares an archive with a file. With PERCH_GOLDEN=rewrite it writes the file instead.
func golden(t *testing.T, file string, got *txtar.Archive) {
	t.Helper()
	if os.Getenv("PERCH_GOLDEN") == "rewrite" {
		must.Succeed(t, os.WriteFile(file, txtar.Format(got), 0o644))
		return
	}
	want := must.Value(os.ReadFile(file))(t)
	if text := txtar.Format(got); string(text) != string(want) {
		t.Errorf("it is\n%s\nand was\n%s\nPERCH_GOLDEN=rewrite keeps it", text, want)
	}
}

// section returns the lines of a client. The lines of each part are in the order of their arrival; the parts are
// separate, because the order of lines of different parts varies.
func section(parts ...[]string) []byte {
	return []byte(strings.Join(slices.Concat(parts...), "\n") + "\n")
}

func prefixed(with string, all []string) (lines []string) {
	for _, one := range all {
		lines = append(lines, with+one)
	}
	return lines
}

// dominant returns the sequence of dominant feelings, beginning with neutral, without repetitions.
func dominant(moods []event.Mood) []string {
	all := []string{"neutral"}
	for _, m := range moods {
		all = append(all, m.Dominant)
	}
	return slices.Compact(all)
}

// faded reports whether there was a feeling, and the latest mood is neutral.
func faded(moods []event.Mood) bool {
	return len(dominant(moods)) > 1 && moods[len(moods)-1].Feelings == event.Feelings{Neutral: 1}
}

// framesOf returns the messages of a type that a skin has received.
func framesOf(w *appliancetest.Watcher, kind string) (all []map[string]any) {
	for _, f := range w.Frames() {
		if f["type"] == kind {
			all = append(all, f)
		}
	}
	return all
}

func skinMoods(w *appliancetest.Watcher) (all []event.Mood) {
	for _, f := range framesOf(w, "mood") {
		var m event.Mood
		if text, err := json.Marshal(f); err == nil && json.Unmarshal(text, &m) == nil {
			all = append(all, m)
		}
	}
	return all
}

func skinActs(w *appliancetest.Watcher) (lines []string) {
	for _, f := range w.Frames() {
		switch f["type"] {
		case "gesture":
			lines = append(lines, fmt.Sprintf("gesture %v by %v", f["name"], f["by"]))
		case "look_at":
			lines = append(lines, fmt.Sprintf("look_at %v by %v", f["target"], f["by"]))
		}
	}
	return lines
}

// mqttPayloads returns the decoded payloads of a topic of the robot, oldest first.
func mqttPayloads[T any](t *testing.T, l *appliancetest.Listener, topic string) (all []T) {
	t.Helper()
	for _, line := range l.Lines() {
		payload, is := strings.CutPrefix(line, appliancetest.RobotTopic+topic+" ")
		if !is {
			continue
		}
		var one T
		if err := json.Unmarshal([]byte(payload), &one); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

func mqttMoods(t *testing.T, l *appliancetest.Listener) (all []event.Mood) {
	t.Helper()
	for _, d := range mqttPayloads[struct {
		Mood, Face string
		event.Feelings
	}](t, l, "mood") {
		if d.Mood == "" {
			continue // the payload is null before the first mood
		}
		all = append(all, event.Mood{Dominant: d.Mood, Face: d.Face, Feelings: d.Feelings})
	}
	return all
}

// mqttActs returns the types of the robot's diary entries and its gestures, as published over MQTT.
func mqttActs(t *testing.T, l *appliancetest.Listener) (lines []string) {
	t.Helper()
	for _, d := range mqttPayloads[struct{ Event_type string }](t, l, "diary") {
		lines = append(lines, "diary "+d.Event_type)
	}
	var gestures []string
	for _, d := range mqttPayloads[struct{ Gesture *string }](t, l, "state") {
		g := "none"
		if d.Gesture != nil {
			g = *d.Gesture
		}
		gestures = append(gestures, "gesture "+g)
	}
	return append(lines, slices.Compact(gestures)...)
}

// robotWords returns the transcripts and sentences that the robot has received.
func robotWords(r *appliancetest.Robot) (lines []string) {
	for _, e := range r.Observations() {
		switch e := e.(type) {
		case simrobot.Transcript:
			lines = append(lines, "hears "+e.Text)
		case simrobot.SentenceShown:
			lines = append(lines, "says "+e.Text)
		}
	}
	return lines
}

func robotHead(r *appliancetest.Robot) (lines []string) {
	for _, m := range appliancetest.ObservationsOf[simrobot.HeadMoved](r) {
		lines = append(lines, fmt.Sprintf("head yaw %d pitch %d", m.Yaw, m.Pitch))
	}
	return lines
}

// robotFaces returns the sequence of faces that the robot has received, without repetitions.
func robotFaces(r *appliancetest.Robot) (all []string) {
	for _, f := range appliancetest.ObservationsOf[simrobot.EmotionShown](r) {
		all = append(all, f.Emotion)
	}
	return slices.Compact(all)
}

// robotLights returns the sequence of colours of the robot's lights, without repetitions. It omits the brightness,
// which fades.
func robotLights(t *testing.T, r *appliancetest.Robot) (lines []string) {
	t.Helper()
	for _, c := range appliancetest.ObservationsOf[simrobot.Called](r) {
		if c.Name != lightTool {
			continue
		}
		var l struct{ Red, Green, Blue float64 }
		if err := json.Unmarshal([]byte(c.Arguments), &l); err != nil {
			t.Errorf("%s: %v", c.Arguments, err)
		}
		most := max(l.Red, l.Green, l.Blue)
		if most == 0 {
			lines = append(lines, "lights off")
			continue
		}
		share := func(part float64) int { return int(math.Round(part / most * 10)) }
		lines = append(lines, fmt.Sprintf("lights %d:%d:%d", share(l.Red), share(l.Green), share(l.Blue)))
	}
	return slices.Compact(lines)
}

// robotFeels returns the sequence of feelings that the robot's faces express. A face expresses the feeling of the mood
// whose face the robot's board shows as this face.
func robotFeels(r *appliancetest.Robot, moods []event.Mood) []string {
	feeling := map[string]string{}
	for _, m := range moods {
		feeling[agent.Emotion{Name: m.Face}.On("m5stack-stack-chan").Name] = m.Dominant
	}
	all := []string{"neutral"}
	for _, face := range robotFaces(r) {
		all = append(all, feeling[face])
	}
	return slices.Compact(all)
}
