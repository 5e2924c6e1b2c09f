package ota_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/tools/txtar"

	"perch/device"
	"perch/must"
)

// TestCheckInTranscripts plays the transcripts in testdata. It sends the check-ins of real clients (<) and
// carries out the owner's commands (!). It compares the responses (>) and the registered robots that may
// connect (=) with those in the transcript. make golden writes the results into the transcripts instead.
func TestCheckInTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive := must.Value(txtar.ParseFile(file))(t)
			if len(archive.Files) != 2 || archive.Files[0].Name != "adoption" || archive.Files[1].Name != "transcript" || len(archive.Comment) < 20 {
				t.Fatal("a transcript is a sentence of intent, the way of adoption and a transcript")
			}
			adoption := device.Adoption(strings.TrimSpace(string(archive.Files[0].Data)))
			var got string
			synctest.Test(t, func(t *testing.T) { got = playCheckIns(t, adoption, string(archive.Files[1].Data)) })
			if os.Getenv("PERCH_GOLDEN") == "rewrite" {
				archive.Files[1].Data = []byte(got)
				must.Succeed(t, os.WriteFile(file, txtar.Format(archive), 0o644))
			} else if want := string(archive.Files[1].Data); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// request is a request in a transcript.
type request struct {
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// playCheckIns plays the lines of the clients and of the owner, and returns the transcript with the results.
func playCheckIns(t *testing.T, adoption device.Adoption, script string) string {
	h := newFixture(t, adoption)
	var out strings.Builder
	for line := range strings.Lines(script) {
		mark, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch mark {
		case "<":
			fmt.Fprintln(&out, mark, text)
			var c request
			if err := json.Unmarshal([]byte(text), &c); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			header := http.Header{}
			for name, value := range c.Headers {
				header.Set(name, value)
			}
			w := h.ask(http.MethodPost, c.Path, "perch.local:8003", header, string(c.Body))
			fmt.Fprintln(&out, ">", w.Code, blanked(w.Body.String()))
			id, err := device.ParseID(header.Get("Device-Id"))
			if robot, known := h.robots.Get(id); err == nil && known == nil && robot.Bound {
				fmt.Fprintf(&out, "= board %q, adopted %t, another waits %t\n", robot.Board, robot.Adopted(), robot.Claim != nil)
			}
		case "!":
			fmt.Fprintln(&out, mark, text)
			h.adopt(t, strings.TrimPrefix(text, "perch robot adopt "))
		}
	}
	return out.String()
}

// blanked returns a response with … in place of what differs from run to run.
func blanked(answer string) string {
	for _, secret := range []string{`("token":")[^"]+`, `("code":")[0-9]+`, `("challenge":")[0-9]{6}`, `(perch robot adopt )[0-9]{6}`} {
		answer = regexp.MustCompile(secret).ReplaceAllString(answer, "$1…")
	}
	return answer
}
