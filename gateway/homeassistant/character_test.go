package homeassistant

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/discovery"
	"perch/must"
)

const (
	mood1 = "perch/a0b1c2d3e4f4/mood"
)

// TestAMoodIsASensor tests that another dominant feeling is published at once, changes of its strength at most once a
// second, and the last change in any case.
func TestAMoodIsASensor(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		h.hello(chan1, "s1")
		synctest.Wait()
		if strings.Contains(s.last(config1), `"mood"`) || len(s.on(mood1)) > 0 {
			t.Error("a robot without a mood has the entity")
		}
		feels := func(dominant string, celebration float64) {
			h.happens(chan1, "s1", event.Mood{Dominant: dominant, Face: "happy",
				Feelings: event.Feelings{Neutral: 1 - celebration, Celebration: celebration}})
		}
		feels("celebration", 0.9)
		synctest.Wait()
		if !has(`"mood":{`, `"json_attributes_topic":"`+mood1+`"`)(s.last(config1)) {
			t.Errorf("announced is %s", s.last(config1))
		}
		if last := s.last(mood1); !has(`"mood":"celebration"`, `"face":"happy"`, `"celebration":0.9`, `"neutral":0.1,`)(last) {
			t.Errorf("published is %s", last)
		}
		before := len(s.on(mood1))
		for i := range 50 { // ten a second
			time.Sleep(100 * time.Millisecond)
			feels("celebration", 0.9-float64(i)*0.018)
		}
		time.Sleep(2 * time.Second)
		all := s.on(mood1)[before:]
		if len(all) < 5 || len(all) > 6 {
			t.Errorf("%d documents in five seconds", len(all))
		}
		for i := range all[1:] {
			if gap := all[i+1].at.Sub(all[i].at); gap < moodInterval {
				t.Errorf("two within %s", gap)
			}
		}
		if !has(`"celebration":0.02`)(s.last(mood1)) {
			t.Errorf("the last is %s", s.last(mood1))
		}
		before = len(s.on(mood1))
		feels("celebration", 0.5)
		feels("neutral", 0)
		synctest.Wait()
		if n := len(s.on(mood1)) - before; n == 0 || !has(`"mood":"neutral"`)(s.last(mood1)) {
			t.Errorf("another feeling waits: %s", s.last(mood1))
		}
		feels("hunger", 0) // a feeling that is not among the options
		time.Sleep(2 * time.Second)
		if !has(`"mood":null`)(s.last(mood1)) {
			t.Errorf("the last is %s", s.last(mood1))
		}
	})
}

// TestTheMoodOfAnEarlierRun tests that the start of a mirror replaces a retained mood.
func TestTheMoodOfAnEarlierRun(t *testing.T) {
	before := func(h *harness, _ *script) { h.options.Announced.PutSoon(string(chan1), []string{"sensor/mood"}) }
	inBubble(t, before, func(t *testing.T, h *harness, s *script) {
		synctest.Wait()
		if !has(`"mood":null`)(s.last(mood1)) {
			t.Errorf("published is %q", s.last(mood1))
		}
	})
}

// TestAGestureIsShownWhileItLasts tests that the state names a gesture until the gesture has ended, and that a gesture
// that the robot does not know is ignored.
func TestAGestureIsShownWhileItLasts(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		h.hello(chan1, "s1")
		h.happens(chan1, "s1", event.Gesture{Name: "wave", Duration: 1500, By: event.ByModel}, event.Gesture{Name: "somersault", By: event.ByModel})
		time.Sleep(time.Second)
		if !has(`"gesture":"wave"`)(s.last(state1)) {
			t.Errorf("the state is %s", s.last(state1))
		}
		time.Sleep(time.Second)
		if !has(`"gesture":null`)(s.last(state1)) {
			t.Errorf("the state is %s", s.last(state1))
		}
	})
}

func TestAGestureIsAskedFor(t *testing.T) {
	b, h, e, _ := mirrored(t, unchanged)
	h.hello(chan1, "s1")
	e.await(state1, has(`"connected":true`))
	reader := h.bus.Read()
	for payload, want := range map[string]event.Gesture{
		"wave": {Name: "wave", By: event.ByOwner}, `{"name":"nod","duration_ms":900}`: {Name: "nod", Duration: 900, By: event.ByOwner},
	} {
		b.publish("perch/a0b1c2d3e4f4/gesture/set", payload)
		for asked := false; !asked; {
			got := must.Value(reader.Next(t.Context()))(t)
			var g event.Gesture
			if g, asked = got.Event.(event.Gesture); asked && (g != want || got.Robot != chan1 || got.Session != "s1") {
				t.Errorf("%s asks for %+v", payload, got)
			}
		}
	}
	for payload, why := range map[string]string{
		"somersault": "there is no gesture", "": "is not a gesture",
		`{"name":"wave","duration_ms":99999999}`: "duration_ms", `{"nane":"wave"}`: "unknown field",
	} {
		e.forget()
		b.publish("perch/a0b1c2d3e4f4/gesture/set", payload)
		e.await(conversation1, has(`"event_type":"command_rejected"`, `"thing":"gesture"`, why))
	}
	h.bye(chan1, "s1")
	e.await(state1, has(`"connected":false`))
	e.forget()
	b.publish("perch/a0b1c2d3e4f4/gesture/set", "wave")
	e.await(conversation1, has(`"event_type":"command_rejected"`, "not kept for later"))
}

// TestACharacterIsASelect tests that the options are the present characters, also after characters were added or
// removed, and a character that is named only in the configuration.
func TestACharacterIsASelect(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		options := func() []string {
			var a struct {
				Components struct{ Character struct{ Options []string } }
			}
			must.Succeed(t, json.Unmarshal([]byte(s.last(config1)), &a))
			return a.Components.Character.Options
		}
		owned := func(persona string) {
			must.Value(h.registry.Configure(chan1, device.Change{Persona: &persona}))(t)
			h.happens(chan1, "", event.Changed{What: "robot"})
			synctest.Wait()
			time.Sleep(stateInterval)
			synctest.Wait()
		}
		if got := options(); !slices.Equal(got, []string{"default"}) || !has(`"character":"default"`)(s.last(state1)) {
			t.Errorf("without any it is %q, %s", got, s.last(state1))
		}
		kept := h.options.Characters.(*storedCharacters)
		kept.are("KEY", "leo")
		h.happens("", "", event.Changed{What: "characters", ID: "leo"})
		synctest.Wait()
		if got := options(); !slices.Equal(got, []string{"default", "KEY", "leo"}) {
			t.Errorf("with others it is %q", got)
		}
		for _, who := range []string{"leo", "KEY", `o'brien\`} { // the last is named only in the configuration
			if owned(who); !has(`"character":`+string(encode(who)))(s.last(state1)) || !slices.Contains(options(), who) {
				t.Errorf("with %s it is %s of %q", who, s.last(state1), options())
			}
		}
		if last := s.last(config1); !has(`'KEY', 'leo', 'o\\'brien\\\\'] else`)(last) {
			t.Errorf("announced is %s", last)
		}
		kept.are("leo")
		owned("")
		h.happens("", "", event.Changed{What: "characters", ID: "KEY"})
		synctest.Wait()
		if got := options(); !slices.Equal(got, []string{"default", "leo"}) {
			t.Errorf("without those that have gone it is %q", got)
		}
	})
}

// TestADiaryIsAnEvent tests that diary entries are published as events, with their texts only if transcripts are shared.
func TestADiaryIsAnEvent(t *testing.T) {
	for _, shared := range []bool{false, true} {
		with := func(h *harness, _ *script) { h.options.ShareTranscripts = shared }
		inBubble(t, with, func(t *testing.T, h *harness, s *script) {
			for i, payload := range []string{`{"text":"Hello."}`, `{"id":"m1","type":"user","name":"She is Ada.","content":"She is Ada."}`,
				`{"message":"m","address":"ed25519:x"}`, `{"skill":"greet","result":{"output":"done"}}`, `{"errors":1,"warnings":2}`,
				`{"uri":"a.glb","error":"gone"}`} {
				h.happens(chan1, "", event.Recorded{Seq: uint64(i + 1), Hash: "ab", Character: "leo", Session: "s1", Type: discovery.DiaryTypes()[i],
					Payload: []byte(payload)})
			}
			h.happens(chan1, "s1", event.Said{Text: "what is not written is no entry"})
			h.happens(stranger, "", event.Recorded{Seq: 7, Type: "speak", Payload: []byte(`{"text":"not ours"}`)})
			synctest.Wait()
			var got []string
			for i, text := range s.texts("perch/a0b1c2d3e4f4/diary") {
				if !has(`"event_type":"`+discovery.DiaryTypes()[i]+`"`, fmt.Sprintf(`"seq":%d,"hash":"ab","agent":"leo"`, i+1), `"session_id":"s1"`)(text) {
					t.Errorf("%d is %s", i, text)
				}
				got = append(got, text)
			}
			if len(got) != 6 {
				t.Errorf("%d entries: %q", len(got), got)
			}
			if words := strings.Contains(fmt.Sprint(got), "Ada"); words != shared {
				t.Errorf("shared is %t: %q", shared, got)
			}
		})
	}
	if slices.Contains(discovery.DiaryTypes()[:6], discovery.Other) {
		t.Error("other is one of them")
	}
}
