package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"perch/agent"
	"perch/agent/openai"
	"perch/agent/thinker"
	"perch/device"
	"perch/must"
)

// speaker is a robot with a tool for the volume. It writes the calls of its tools to the transcript.
type speaker struct{ log *strings.Builder }

func (speaker) Tools() []device.Tool {
	return []device.Tool{{Name: "self.audio_speaker.set_volume", Description: "Set the volume.", Schema: device.Schema{Type: "object",
		Properties: map[string]device.Argument{"volume": {Type: "integer"}}}}}
}

func (s speaker) Call(_ context.Context, name string, args map[string]any) (device.Result, error) {
	text, err := json.Marshal(args)
	fmt.Fprintf(s.log, "robot   %s %s\n", name, text)
	return device.Result{Text: "true"}, err
}

func (speaker) Reboot(context.Context) error { return nil }

// answers plays the server of a model. It returns the responses of a file one after the other. In the file, each
// response begins with a line ">>> STATUS".
type answers struct {
	left []string
	log  *strings.Builder
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	var body struct {
		Messages []struct {
			Role    string
			Content any
			Calls   []json.RawMessage `json:"tool_calls"`
			Thought string            `json:"reasoning_content"`
		}
		Tools  []any
		Effort string `json:"reasoning_effort"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	fmt.Fprintf(a.log, "server  gets %d tools", len(body.Tools))
	if body.Effort != "" {
		fmt.Fprintf(a.log, ", reasoning_effort %s", body.Effort)
	}
	for _, m := range body.Messages {
		if m.Role == "system" {
			continue
		}
		fmt.Fprintf(a.log, "; %s %q", m.Role, fmt.Sprint(m.Content))
		for _, c := range m.Calls {
			fmt.Fprintf(a.log, " + %s", c)
		}
		if m.Thought != "" {
			fmt.Fprintf(a.log, " + reasoning_content %q", m.Thought)
		}
	}
	a.log.WriteString("\n")
	if len(a.left) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	head, text, _ := strings.Cut(a.left[0], "\n")
	a.left = a.left[1:]
	status := 0
	if _, err := fmt.Sscanf(head, "%d", &status); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// TestTalks runs two turns with the responses of each server, and compares the transcripts. In the first turn the
// model calls a tool. PERCH_GOLDEN=rewrite updates the transcripts in testdata/talks.
func TestTalks(t *testing.T) {
	files := must.Value(filepath.Glob("testdata/talks/*.txtar"))(t)
	if len(files) < 20 {
		t.Fatalf("only %d talks", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive := must.Value(txtar.ParseFile(file))(t)
			var log strings.Builder
			o := options("http://pi.example/v1")
			if strings.Contains(string(archive.Comment), "native") {
				o.Dialect = openai.DialectOllama
			}
			server := &answers{left: strings.Split(strings.TrimPrefix(string(archive.Files[0].Data), ">>> "), "\n>>> "), log: &log}
			o.Transport = server
			if strings.Contains(string(archive.Comment), "opens a thought in the prompt") {
				o.Model = "deepseek-r1-distill"
			}
			brain := thinker.New(thinker.Options{Model: engine(t, o)})
			var history []agent.Exchange
			for _, heard := range []string{"Make it quieter, please.", "Thank you."} {
				fmt.Fprintf(&log, "person  %s\n", heard)
				said := ""
				err := brain.Think(t.Context(), agent.Turn{Text: heard, Language: "en", Now: time.Unix(0, 0), Body: speaker{&log}, History: history},
					func(r agent.Reply) error {
						if say, is := r.(agent.Say); is {
							fmt.Fprintf(&log, "says    %s\n", say.Text)
							said += say.Text + " "
						}
						return nil
					})
				if err != nil {
					fmt.Fprintf(&log, "error   %v\n", err)
				}
				history = append(history, agent.Exchange{Heard: heard, Said: strings.TrimSpace(said)})
			}
			if len(server.left) > 0 {
				fmt.Fprintf(&log, "server  has %d answers left\n", len(server.left))
			}
			want := string(archive.Files[1].Data)
			if log.String() == want {
				return
			}
			if os.Getenv("PERCH_GOLDEN") == "rewrite" {
				archive.Files[1].Data = []byte(log.String())
				must.Succeed(t, os.WriteFile(file, txtar.Format(archive), 0o644))
				return
			}
			t.Errorf("the talk is\n%s\nwant\n%s", log.String(), want)
		})
	}
}
