package appliance_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perch/agent/realtime"
	"perch/agent/realtime/realtimetest"
	"perch/agent/thinker"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/firmware-tools/simrobot"
)

// withRealtime starts an appliance whose first brain is a fake server of the Realtime API, and whose other engines are
// peers.
func withRealtime(t *testing.T, p *appliancetest.Peers, s *realtimetest.Server) *appliancetest.Appliance {
	t.Helper()
	c := appliancetest.Config()
	p.Use(&c)
	o := realtime.Options{URL: realtimetest.Serve(t, s).URL + "/v1", Model: "gpt-realtime", Key: realtimetest.Key}
	c.Brains = slices.Insert(c.Brains, 0, config.Engine{Kind: "realtime", Options: &thinker.BrainKeys[realtime.Options]{Model: o}})
	return appliancetest.Start(t, c, t.TempDir())
}

// TestSpokenTalkWithRealtime checks two turns with a model that hears and speaks: the second moves the robot's head by a
// tool, and knows what was said in the first.
func TestSpokenTalkWithRealtime(t *testing.T) {
	var turn atomic.Int64
	s := &realtimetest.Server{Transcript: "what time is it", Answer: func(r *realtimetest.Response) error {
		switch {
		case len(r.Outputs) > 0:
			return r.Speak("Now I look left.", time.Second)
		case turn.Add(1) == 2:
			return errors.Join(r.Speak("Just a moment.", time.Second), r.Call("self_robot_set_head_angles", `{"yaw":-40,"pitch":10}`))
		}
		return r.Speak("It is three.", time.Second)
	}}
	p := appliancetest.NewPeers(t)
	h := withRealtime(t, p, s)
	r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it", "what time is it")})
	r.CheckComplete(t)
	for _, sentence := range []string{"It is three.", "Just a moment.", "Now I look left."} {
		if !r.HasShown(sentence) {
			t.Errorf("the robot has not shown %q", sentence)
		}
	}
	if _, called := r.LastTime(appliancetest.Match(func(c simrobot.Called) bool {
		return c.Name == "self.robot.set_head_angles" && strings.Contains(c.Arguments, "-40") && c.Err == ""
	})); !called {
		t.Error("the head was not moved")
	}
	if items := s.Items(); !slices.Contains(items, "user: what time is it") || !slices.Contains(items, "assistant: It is three.") {
		t.Errorf("the second turn does not know the first: %q", items)
	}
	_, spoken := p.Requests()
	for _, s := range spoken { // the appliance's own sentences are synthesized ahead
		if s.Text == "It is three." || s.Text == "Just a moment." {
			t.Errorf("the synthesizer has spoken %q", s.Text)
		}
	}
	var turns []struct {
		Heard, Said string
		Brain       string
		Tokens      int
		Calls       []json.RawMessage
	}
	h.Eventually("both turns are stored", func() bool {
		h.Admin("GET", "/api/v1/turns", "", &turns)
		return len(turns) == 2
	})
	for _, turn := range turns {
		if turn.Heard != "what time is it" || turn.Brain != "realtime" || turn.Tokens != 100*(1+len(turn.Calls)) {
			t.Errorf("stored %+v", turn)
		}
	}
	if part := h.Part("brain realtime"); !part.OK {
		t.Errorf("the part says %+v", part)
	}
	if _, text := h.Request(http.MethodGet, "/ready", ""); !strings.Contains(text, "realtime") || strings.Contains(text, "token") {
		t.Errorf("anybody reads how much is talked: %s", text)
	}
}

// TestRealtimeCutOff checks that the ordinary engines answer the same utterance if the line is cut before the answer has
// begun, and that the part says why.
func TestRealtimeCutOff(t *testing.T) {
	for name, s := range map[string]*realtimetest.Server{
		"cut": {Answer: (*realtimetest.Response).Cut}, "over quota": {Quota: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.Transcript = "what time is it"
			p := appliancetest.NewPeers(t)
			h := withRealtime(t, p, s)
			r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")})
			r.CheckComplete(t)
			if !r.HasShown("It is three.") {
				t.Error("the next brain has not answered")
			}
			want := map[string]string{"cut": "cut the connection", "over quota": "no credit left"}[name]
			if part := h.Part("brain realtime"); part.OK || !strings.Contains(part.Note, want) {
				t.Errorf("the part says %+v, want %s", part, want)
			}
		})
	}
}

// TestRealtimeInterrupted checks that a tap on the robot cancels the response at the server, and that nothing is left of
// the turn.
func TestRealtimeInterrupted(t *testing.T) {
	s := &realtimetest.Server{Transcript: "what time is it", Answer: func(r *realtimetest.Response) error {
		if err := r.Speak("Once upon a time.", 2*time.Second); err != nil {
			return err
		}
		return r.Wait()
	}}
	h := withRealtime(t, appliancetest.NewPeers(t), s)
	robot := h.StartRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it"), Stay: true})
	h.Eventually("the answer is spoken", func() bool { return robot.HasShown("Once upon a time.") })
	robot.Tap()
	h.Eventually("the response is cancelled", func() bool { return s.Cancelled() == 1 })
	robot.Off()
}
