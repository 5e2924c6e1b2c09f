package realtime_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/realtime"
	"perch/agent/realtime/realtimetest"
	"perch/must"
)

// withGemini changes options for a fake server of Gemini's API.
func withGemini(s *realtimetest.Gemini) func(*realtime.Options) {
	return func(o *realtime.Options) {
		o.URL, o.Model, o.Voice, o.Dialect = s.URL, "gemini-live", "Puck", realtime.DialectGemini
	}
}

// TestGeminiTalkWithATool: a spoken talk by Gemini's API has the same replies as one by OpenAI's.
func TestGeminiTalkWithATool(t *testing.T) {
	s := realtimetest.ServeGemini(t, &realtimetest.Gemini{Transcript: "Look left.", Answer: func(outputs []string) []string {
		if len(outputs) == 0 {
			return []string{`{"toolCall":{"functionCalls":[{"id":"c1","name":"self_robot_set_head_angles","args":{"yaw":-40}}]},"usageMetadata":{"totalTokenCount":20}}`}
		}
		return []string{realtimetest.GeminiSpeech("I look "+outputs[0]+". ", time.Second), `{"goAway":{"timeLeft":"10s"}}`,
			realtimetest.GeminiSpeech("Nice view.", time.Second), `{"serverContent":{"generationComplete":true}}`, realtimetest.GeminiEnd}
	}})
	k, _ := brain(t, nil, withGemini(s))
	b := &body{}
	got, err := talk(t.Context(), k, agent.Turn{Speech: utterance(), Body: b, History: []agent.Exchange{{Heard: "Hello", Said: "Hi."}}})
	must.Succeed(t, err)
	want(t, got, "heard Look left.", "used 20", "tool running", "tool done", "sounding I look turned.", "sound 1.0 s", "sounding Nice view.", "sound 1.0 s", "used 50", "done")
	if len(b.moves) != 1 || b.moves[0]["yaw"] != -40.0 {
		t.Errorf("the head was moved %v", b.moves)
	}
	want(t, s.Received(), "setup", "clientContent", "activityStart", "audio", "activityEnd", "toolResponse")
	want(t, s.Turns(), "user: Hello", "model: Hi.")
	if s.Sound() != 16000 {
		t.Errorf("a second of speech arrived as %d samples", s.Sound())
	}
	for _, part := range []string{"You are Ada.", `"voiceName":"Puck"`, `"responseModalities":["AUDIO"]`, `"disabled":true`, "parametersJsonSchema"} {
		if !strings.Contains(s.Setup(), part) {
			t.Errorf("the setup lacks %s: %s", part, s.Setup())
		}
	}
}

// TestGeminiAway: what keeps the server from answering makes another brain answer.
func TestGeminiAway(t *testing.T) {
	speech := func([]string) []string {
		return []string{realtimetest.GeminiSpeech("Hi.", time.Second), realtimetest.GeminiEnd}
	}
	for name, c := range map[string]struct {
		server *realtimetest.Gemini
		key    string
		want   string
	}{
		"wrong key":  {server: &realtimetest.Gemini{Answer: speech}, key: "wrong", want: "refuses the key"},
		"over quota": {server: &realtimetest.Gemini{Answer: speech, Reason: "You exceeded your current quota, please check your plan"}, want: "no credit left"},
		"cut":        {server: &realtimetest.Gemini{Answer: func([]string) []string { return []string{""} }}, want: "cut the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			s := realtimetest.ServeGemini(t, c.server)
			k, e := brain(t, nil, withGemini(s), func(o *realtime.Options) {
				if c.key != "" {
					o.Key = c.key
				}
			})
			if got, err := talk(t.Context(), k, agent.Turn{Speech: utterance()}); !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v", got, err)
			}
			if err := e.Check(t.Context()); (err != nil) != (name != "cut") {
				t.Errorf("the check says %v", err)
			}
		})
	}
}

// TestGeminiHearsNobody: a server that finds the end of the speech itself, and has heard nobody, ends the turn in silence.
// If it has heard somebody and does not answer, another brain does.
func TestGeminiHearsNobody(t *testing.T) {
	for name, messages := range map[string][]string{"nobody": nil, "somebody": {`{"serverContent":{"inputTranscription":{"text":"Hel"}}}`}} {
		s := realtimetest.ServeGemini(t, &realtimetest.Gemini{Answer: func([]string) []string { return messages }})
		k, _ := brain(t, nil, withGemini(s), func(o *realtime.Options) { o.ServerTurns, o.FirstWithin = true, 200*time.Millisecond })
		got, err := talk(t.Context(), k, agent.Turn{Speech: utterance()})
		if messages == nil {
			must.Succeed(t, err)
			want(t, got, "heard ", "done")
		} else if !errors.Is(err, agent.ErrAway) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestGeminiVariants: the server may find the end of the speech itself, and be asked by text.
func TestGeminiVariants(t *testing.T) {
	speech := func([]string) []string {
		return []string{`{"serverContent":{"modelTurn":{"parts":[{"text":"Hm.","thought":true}]}}}`, realtimetest.GeminiSpeech("Hi.", time.Second), realtimetest.GeminiEnd}
	}
	for name, c := range map[string]struct {
		turn   agent.Turn
		server bool
		first  string
	}{
		"server turns": {turn: agent.Turn{Speech: utterance()}, server: true, first: "sounding Hi."},
		"text":         {turn: agent.Turn{Text: "Hello"}, first: "sounding Hi."},
	} {
		t.Run(name, func(t *testing.T) {
			s := realtimetest.ServeGemini(t, &realtimetest.Gemini{Answer: speech})
			k, _ := brain(t, nil, withGemini(s), func(o *realtime.Options) { o.ServerTurns = c.server })
			got, err := talk(t.Context(), k, c.turn)
			if err != nil || !slices.Contains(got, c.first) || !slices.Contains(got, "sound 1.0 s") || slices.Contains(got, "sounding Hm.") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
