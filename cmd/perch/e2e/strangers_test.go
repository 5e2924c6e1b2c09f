package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perch/agent"
	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/event"
	"perch/firmware-tools/simrobot"
	"perch/gateway/robot"
	"perch/must"
)

// TestAForeignCheckIn: between a robot's check-in and its conversation, another client checks in with the robot's MAC
// address, another Client-Id and its own address as Host. The robot still sends its pictures to the appliance, and the
// base URL stored for the robot does not change.
func TestAForeignCheckIn(t *testing.T) {
	t.Parallel()
	for _, adoption := range []string{"open", "code"} {
		t.Run(adoption, func(t *testing.T) {
			var stolen atomic.Int32
			thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
			defer thief.Close()
			c := appliancetest.Config()
			c.Adoption = adoption
			h := open(t, c, t.TempDir())
			foreign := func() {
				status, answer := h.Request(http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", "a0:b1:c2:d3:e4:f5", "Client-Id", "foreign",
					"User-Agent", "bread/9.9.9", "Host", strings.TrimPrefix(thief.URL, "http://"))
				if status != http.StatusOK || strings.Contains(answer, `"token"`) {
					t.Errorf("the foreign check-in is answered %d %s", status, answer)
				}
			}
			r := h.NewRobot(simrobot.Options{Say: appliancetest.Sentences(t, "take a photo"), Observe: func(e simrobot.Observation) {
				switch e := e.(type) {
				case simrobot.AwaitsAdoption:
					h.command("robot adopt "+e.Code, 0)
				case simrobot.CheckedIn:
					if h.Robots.Trusts("a0b1c2d3e4f5") {
						foreign()
					}
				}
			}})
			must.Succeed(t, r.Run(t.Context()))
			if _, came := h.Talk.Picture("a0b1c2d3e4f5"); !came || stolen.Load() > 0 {
				t.Errorf("the picture came: %t; requests that the thief got: %d", came, stolen.Load())
			}
			robot, err := h.Robots.Get("a0b1c2d3e4f5")
			if err != nil || robot.BaseURL != strings.TrimSuffix(h.URL(""), "/") || robot.Claim == nil || !robot.Adopted() {
				t.Errorf("the robot is %+v (%v)", robot, err)
			}
			h.command("robot adopt a0b1c2d3e4f5", 1, "adopt it by the code on its screen")
			h.command("robot list", 0, "another client uses the MAC address of this robot")
			if r, _ := h.Robots.Get("a0b1c2d3e4f5"); r.Client == robot.Claim.Client {
				t.Error("the claim was taken")
			}
		})
	}
}

// TestTheFirstHourAfterInstallation: robots that check in within the first hour are adopted automatically, also after a
// restart. Later robots are strangers.
func TestTheFirstHourAfterInstallation(t *testing.T) {
	data := t.TempDir()
	h := open(t, appliancetest.Config(), data)
	h.Token("/xiaozhi/ota/", "Device-Id", "a0:b1:c2:d3:e4:f5", "Client-Id", "one")
	if !h.Robots.Trusts("a0b1c2d3e4f5") {
		t.Error("a newcomer's robot is a stranger")
	}
	h.Robots.Welcome(time.Time{})
	if token := h.Token("/xiaozhi/ota/", "Device-Id", "a0:b1:c2:d3:e4:f6", "Client-Id", "two"); token == "" || h.Robots.Trusts("a0b1c2d3e4f6") {
		t.Errorf("who comes later gets the token %q, and is adopted: %t", token, h.Robots.Trusts("a0b1c2d3e4f6"))
	}
	if out := h.command("robot list", 0); !strings.Contains(out,
		"not adopted, so it may only talk: perch robot adopt a0b1c2d3e4f6") {
		t.Errorf("devices says %s", out)
	}
	h.command("robot adopt a0b1c2d3e4f5", exitDone, "was adopted already")
	h.Stop()
	h = open(t, appliancetest.Config(), data) // the hour is not over
	if h.Token("/xiaozhi/ota/", "Device-Id", "a0:b1:c2:d3:e4:f7", "Client-Id", "three"); !h.Robots.Trusts("a0b1c2d3e4f7") {
		t.Error("after a restart within the hour nobody is adopted")
	}
	h.Robots.Welcome(time.Time{})
	h.Token("/xiaozhi/ota/", "Device-Id", "a0:b1:c2:d3:e4:f8", "Client-Id", "four")
	h.command("robot forget --strangers", 0, "strangers forgotten: 2")
	if n := len(h.Robots.List()); n != 2 {
		t.Errorf("%d robots are left", n)
	}
}

// TestAStrangerGetsATalkAndNothingElse: a robot that is not adopted can hold a conversation. It cannot read the memory
// of the adopted robots, stores nothing, sets no timer, gets no notification, is never the default robot, and causes no
// events except those about its connection.
func TestAStrangerGetsATalkAndNothingElse(t *testing.T) {
	t.Parallel()
	const mac, id = "02:00:00:00:00:01", device.ID("020000000001") // lower than any robot's
	c := appliancetest.Config()
	c.Bridge.Key = "a bridge key that is long enough"
	h := open(t, c, t.TempDir())
	h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "remember that my keys are in the kitchen")})
	h.Robots.Welcome(time.Time{})
	turns := len(h.Records.Turns(100))
	before := h.Bus.Seq()

	r := h.RunRobot(simrobot.Options{MAC: mac, Say: appliancetest.Sentences(t, "where are my keys", "remember that my keys are in the bedroom",
		"where are my keys", "set a timer for ten minutes")})
	var answers []string
	for _, turn := range r.Stats().Turns {
		answers = append(answers, strings.Join(turn.Answer, " "))
	}
	if len(answers) != 4 || strings.Contains(answers[0], "kitchen") || !strings.Contains(answers[2], "bedroom") ||
		strings.Contains(answers[3], "starting now") {
		t.Errorf("it was answered %q", answers)
	}
	if found := h.Memory.Search("", time.Now()); len(found) != 1 || !strings.Contains(found[0].Body, "kitchen") {
		t.Errorf("remembered is %+v", found)
	}
	if n := len(h.Records.Turns(100)); n != turns {
		t.Errorf("%d turns are kept, not %d", n, turns)
	}
	if robot, err := h.Robots.Get(id); err != nil || robot.Adopted() || robot.Tools != nil {
		t.Errorf("kept is %+v (%v)", robot, err)
	}

	stays := h.StartRobot(simrobot.Options{MAC: mac, Stay: true})
	h.Eventually("the stranger's channel is open", func() bool { return len(h.Talk.List()) == 1 })
	if notice := strings.TrimSpace(h.command("notification send the post is here", 0)); notice == "" {
		t.Error("nothing is notified")
	}
	h.command("notification send the post is here --robot "+string(id), 1, "perch robot adopt "+string(id))
	h.Expect(http.StatusServiceUnavailable, "", http.MethodPost, "/xiaozhi/admin/say", `{"text":"hello"}`,
		"Authorization", "Bearer "+h.OwnerToken())
	if open := h.Talk.Reachable(); len(open) != 0 {
		t.Errorf("those that are told things: %v", open)
	}
	reader := h.Bus.ReadFrom(before + 1)
	for h.Bus.Seq() > before {
		e := must.Value(reader.Next(t.Context()))(t)
		before = e.Seq
		if kind := event.Kind(e.Event); e.Robot == id && !strings.HasPrefix(kind, "robot_") {
			t.Errorf("of the stranger the bus carries %s", kind)
		}
	}
	if stays.HasShown("the post is here") {
		t.Error("the stranger was told")
	}

	h.command("robot adopt "+string(id), 0)
	h.Eventually("adopted, it is among those that are told things", func() bool { return len(h.Talk.Reachable()) == 1 })
}

// TestDevicesMoveNoTerminal: perch robot list prints a robot's values without control characters and line breaks, even
// if the appliance sends them, as earlier versions may.
func TestDevicesMoveNoTerminal(t *testing.T) {
	const nasty = "m5\x1b[2J\x1b]0;owned\x07\r\nb827eb000000  forged\u202e\u2028"
	list, err := json.Marshal([]map[string]any{{"id": "a0b1c2d3e4f5", "board": nasty, "firmware": nasty, "address": nasty, "connected": true,
		"state":  nasty,
		"senses": []string{nasty}, "waiting": nasty, "code": "123456"}})
	must.Succeed(t, err)
	appliance := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/refused") {
			list = []byte("[]")
		}
		_, _ = w.Write(list)
	}))
	defer appliance.Close()
	asWritten := strings.TrimPrefix(appliance.URL, "http://") + "/"
	out := bare(t, "robot list --url "+asWritten, exitDone)
	if strings.ContainsAny(out, "\x1b\x07\r\u202e\u2028") || strings.Count(out, "\n") != 3 {
		t.Errorf("shown is %q", out)
	}
}

// TestARefusedCheckInIsShown: a robot whose check-in is refused is not in the list of robots. perch robot list and
// perch doctor report the refusal and its reason.
func TestARefusedCheckInIsShown(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	for range 3 {
		h.Request(http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", "kitchen")
	}
	for _, command := range []struct {
		line string
		code int
	}{{"robot list", 0}, {"doctor --config " + elsewherePorts(t), 1}} {
		h.command(command.line, command.code, `from 127.0.0.1 as "kitchen"`, "(3 so far)", "must hold the robot's MAC address")
	}
}

// TestAdoptionDisplacesAnImpostor: a client that has connected first with the MAC address of the owner's robot is
// disconnected when the owner adopts the robot by its code.
func TestAdoptionDisplacesAnImpostor(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	h.Robots.Welcome(time.Time{})
	h.StartRobot(simrobot.Options{Stay: true})
	h.Eventually("the first is here", func() bool { return len(h.Talk.List()) == 1 })
	session := h.Talk.List()[0].Session
	h.Mind.AddExchange("a0b1c2d3e4f5", agent.Exchange{Heard: "who are you", Said: "a secret of the first"}, time.Now())

	status, answer := h.Request(http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", "a0:b1:c2:d3:e4:f5", "Client-Id", "the owner's")
	var waits struct{ Activation struct{ Code string } }
	if err := json.Unmarshal([]byte(answer), &waits); err != nil || status != http.StatusOK || len(waits.Activation.Code) != 6 {
		t.Fatalf("the owner's robot is answered %d %s", status, answer)
	}
	h.command("robot adopt a0b1c2d3e4f5", 1, "more than one client names itself by this MAC address")
	must.Value(h.OwnerRobots.Adopt(waits.Activation.Code, time.Now()))(t) // as Home Assistant does
	h.Eventually("the first has gone", func() bool {
		return !slices.ContainsFunc(h.Talk.List(), func(s robot.Status) bool { return s.Session == session })
	})
	if robot, err := h.Robots.Get("a0b1c2d3e4f5"); err != nil || robot.Client != device.NewClient("the owner's") || !robot.Adopted() {
		t.Errorf("adopted is %+v (%v)", robot, err)
	}
}
