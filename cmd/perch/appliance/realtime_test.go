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

// withRealtime starts an appliance whose first brain is realtime with these options, and whose other engines are peers.
func withRealtime(t *testing.T, p *appliancetest.Peers, o realtime.Options) *appliancetest.Appliance {
	t.Helper()
	c := appliancetest.Config()
	p.Use(&c)
	o.Model, o.Key = "a-model", realtimetest.Key
	c.Brains = slices.Insert(c.Brains, 0, config.Engine{Kind: "realtime", Options: &thinker.BrainKeys[realtime.Options]{Model: o}})
	return appliancetest.Start(t, c, t.TempDir())
}

// withOpenAI is withRealtime with a fake server of OpenAI's API.
func withOpenAI(t *testing.T, p *appliancetest.Peers, s *realtimetest.Server) *appliancetest.Appliance {
	t.Helper()
	s.Transcript = "what time is it"
	return withRealtime(t, p, realtime.Options{URL: realtimetest.Serve(t, s).URL + "/v1"})
}

// TestSpokenTalkWithRealtime checks three turns with a model that hears and speaks, over a fake of each API: the second
// moves the robot's head by a tool, and knows what was said in the first; in the third the line is cut before the answer
// has begun, and the ordinary engines answer the same utterance.
func TestSpokenTalkWithRealtime(t *testing.T) {
	t.Parallel()
	const arguments = `{"yaw":-40,"pitch":10}`
	for dialect, c := range map[string]struct {
		serve  func(t *testing.T, turn *atomic.Int64) (o realtime.Options, said func() []string)
		tokens int // of each message
		past   []string
	}{
		realtime.DialectOpenAI: {func(t *testing.T, turn *atomic.Int64) (realtime.Options, func() []string) {
			s := realtimetest.Serve(t, &realtimetest.Server{Transcript: "what time is it", Answer: func(r *realtimetest.Response) error {
				if len(r.Outputs) > 0 {
					return r.Speak("Now I look left.", time.Second)
				}
				switch turn.Add(1) {
				case 2:
					return errors.Join(r.Speak("Just a moment.", time.Second), r.Call("self_robot_set_head_angles", arguments))
				case 3:
					return r.Cut()
				}
				return r.Speak("It is four.", time.Second)
			}})
			return realtime.Options{URL: s.URL + "/v1"}, s.Items
		}, 100, []string{"user: what time is it", "assistant: It is four."}},
		realtime.DialectGemini: {func(t *testing.T, turn *atomic.Int64) (realtime.Options, func() []string) {
			s := realtimetest.ServeGemini(t, &realtimetest.Gemini{Transcript: "what time is it", Answer: func(outputs []string) []string {
				if len(outputs) > 0 {
					return []string{realtimetest.GeminiSpeech("Now I look left.", time.Second), realtimetest.GeminiEnd}
				}
				switch turn.Add(1) {
				case 2:
					return []string{realtimetest.GeminiSpeech("Just a moment.", time.Second), `{"toolCall":{"functionCalls":[{"id":"c1",` +
						`"name":"self_robot_set_head_angles","args":` + arguments + `}]},"usageMetadata":{"totalTokenCount":50}}`}
				case 3:
					return []string{""}
				}
				return []string{realtimetest.GeminiSpeech("It is four.", time.Second), realtimetest.GeminiEnd}
			}})
			return realtime.Options{URL: s.URL, Dialect: realtime.DialectGemini}, s.Turns
		}, 50, []string{"user: what time is it", "model: It is four."}},
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			var turn atomic.Int64
			o, past := c.serve(t, &turn)
			p := appliancetest.NewPeers(t)
			h := withRealtime(t, p, o)
			r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it", "what time is it", "what time is it")})
			r.CheckComplete(t)
			for _, sentence := range []string{"It is four.", "Just a moment.", "Now I look left.", "It is three."} {
				if !r.HasShown(sentence) {
					t.Errorf("the robot has not shown %q", sentence)
				}
			}
			if _, called := r.LastTime(appliancetest.Match(func(c simrobot.Called) bool {
				return c.Name == "self.robot.set_head_angles" && strings.Contains(c.Arguments, "-40") && c.Err == ""
			})); !called {
				t.Error("the head was not moved")
			}
			for _, item := range c.past {
				if !slices.Contains(past(), item) {
					t.Errorf("the second turn does not know the first: %q", past())
				}
			}
			_, spoken := p.Requests()
			for _, s := range spoken { // the appliance's own sentences are synthesized ahead
				if s.Text == "It is four." || s.Text == "Just a moment." {
					t.Errorf("the synthesizer has spoken %q", s.Text)
				}
			}
			var turns []struct {
				Heard, Said string
				Brain       string
				Tokens      int
				Calls       []json.RawMessage
			}
			h.Eventually("the turns are stored", func() bool {
				h.Admin("GET", "/api/v1/turns", "", &turns)
				return len(turns) == 3
			})
			for _, turn := range turns {
				own := turn.Said != "It is three."
				if turn.Heard != "what time is it" || (turn.Brain == "realtime") != own || own && turn.Tokens != c.tokens*(1+len(turn.Calls)) {
					t.Errorf("stored %+v", turn)
				}
			}
			if part := h.Part("brain realtime"); part.OK || !strings.Contains(part.Note, "cut the connection") {
				t.Errorf("the part says %+v", part)
			}
			if _, text := h.Request(http.MethodGet, "/ready", ""); !strings.Contains(text, "realtime") || strings.Contains(text, "token") {
				t.Errorf("anybody reads how much is talked: %s", text)
			}
		})
	}
}

// TestRealtimeOverQuota checks that the ordinary engines answer if the account is empty, and that the part says so.
func TestRealtimeOverQuota(t *testing.T) {
	t.Parallel()
	h := withOpenAI(t, appliancetest.NewPeers(t), &realtimetest.Server{Quota: true})
	r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")})
	r.CheckComplete(t)
	if !r.HasShown("It is three.") {
		t.Error("the next brain has not answered")
	}
	if part := h.Part("brain realtime"); part.OK || !strings.Contains(part.Note, "no credit left") {
		t.Errorf("the part says %+v", part)
	}
}

// TestRealtimeInterrupted checks that a tap on the robot cancels the response at the server, and that nothing is left of
// the turn.
func TestRealtimeInterrupted(t *testing.T) {
	t.Parallel()
	s := &realtimetest.Server{Answer: func(r *realtimetest.Response) error {
		if err := r.Speak("Once upon a time.", 2*time.Second); err != nil {
			return err
		}
		return r.Wait()
	}}
	h := withOpenAI(t, appliancetest.NewPeers(t), s)
	robot := h.StartRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it"), Stay: true})
	h.Eventually("the answer is spoken", func() bool { return robot.HasShown("Once upon a time.") })
	if part := h.Part("brain realtime"); !part.OK {
		t.Errorf("the part says %+v", part)
	}
	robot.Tap()
	h.Eventually("the response is cancelled", func() bool { return s.Cancelled() == 1 })
	robot.Off()
}
