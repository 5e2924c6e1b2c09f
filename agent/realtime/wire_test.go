package realtime_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"perch/agent"
	"perch/agent/realtime/realtimetest"
	"perch/agent/thinker"
	"perch/must"
)

// TestWireTranscripts compares the messages of whole talks, and the replies to the robot, with the transcripts in
// testdata: in each dialect, a tool moves the head, an answer is interrupted, and a line is cut. make golden rewrites
// the transcripts instead.
func TestWireTranscripts(t *testing.T) {
	const piece = 100 * time.Millisecond // one message, so that what follows it has one order
	openai := func(answer func(*realtimetest.Response) error) func(*testing.T) (*thinker.Brain, string, func() []string) {
		return func(t *testing.T) (*thinker.Brain, string, func() []string) {
			s := realtimetest.Serve(t, &realtimetest.Server{Transcript: "Look left.", Answer: answer})
			k, _ := brain(t, s)
			return k, s.URL, s.Wire
		}
	}
	gemini := func(answer func([]string) []string) func(*testing.T) (*thinker.Brain, string, func() []string) {
		return func(t *testing.T) (*thinker.Brain, string, func() []string) {
			s := realtimetest.ServeGemini(t, &realtimetest.Gemini{Transcript: "Look left.", Answer: answer})
			k, _ := brain(t, nil, withGemini(s))
			return k, s.URL, s.Wire
		}
	}
	for dialect, talks := range map[string][]struct {
		name  string
		serve func(*testing.T) (*thinker.Brain, string, func() []string)
	}{
		"openai": {
			{"a tool", openai(func(r *realtimetest.Response) error {
				if len(r.Outputs) == 0 {
					return r.Call("self_robot_set_head_angles", `{"yaw":-40}`)
				}
				return r.Speak("I look left.", time.Second)
			})},
			{"an interruption", openai(func(r *realtimetest.Response) error {
				return errors.Join(r.Speak("Once upon a time.", piece), r.Wait())
			})},
			{"a cut line", openai(func(r *realtimetest.Response) error { return errors.Join(r.Speak("It is", piece), r.Cut()) })},
		},
		"gemini": {
			{"a tool", gemini(func(outputs []string) []string {
				if len(outputs) == 0 {
					return []string{`{"toolCall":{"functionCalls":[{"id":"c1","name":"self_robot_set_head_angles","args":{"yaw":-40}}]},"usageMetadata":{"totalTokenCount":20}}`}
				}
				return []string{realtimetest.GeminiSpeech("I look left.", time.Second), realtimetest.GeminiEnd}
			})},
			{"an interruption", gemini(func([]string) []string { return []string{realtimetest.GeminiSpeech("Once upon a time.", piece)} })},
			{"a cut line", gemini(func([]string) []string { return []string{realtimetest.GeminiSpeech("It is", piece), ""} })},
		},
	} {
		t.Run(dialect, func(t *testing.T) {
			file := "testdata/" + dialect + ".txtar"
			golden := must.Value(txtar.ParseFile(file))(t)
			var files []txtar.File
			for _, c := range talks {
				k, address, wire := c.serve(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				turn := agent.Turn{Speech: utterance(), Body: &body{}, History: []agent.Exchange{{Heard: "Hello", Said: "Hi."}}}
				replies, err := talk(ctx, k, turn, func(r agent.Reply) {
					if _, is := r.(agent.Sound); is && c.name == "an interruption" {
						cancel()
					}
				})
				if err != nil {
					replies = append(replies, "failed: "+strings.ReplaceAll(err.Error(), address, "ADDRESS"))
				}
				lines := append(wire(), replies...)
				files = append(files, txtar.File{Name: c.name, Data: []byte(strings.Join(lines, "\n") + "\n")})
			}
			got := txtar.Format(&txtar.Archive{Comment: golden.Comment, Files: files})
			if os.Getenv("PERCH_GOLDEN") == "rewrite" {
				must.Succeed(t, os.WriteFile(file, got, 0o644))
			} else if want := txtar.Format(golden); string(got) != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
