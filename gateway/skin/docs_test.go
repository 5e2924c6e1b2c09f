package skin

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"perch/agent"
	"perch/device"

	"perch/agent/feed"
)

// TestTheDocsAreTrue: the words and the frames that docs/skins.md shows are
// those of the code.
func TestTheDocsAreTrue(t *testing.T) {
	file, err := os.ReadFile("../../docs/skins.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(file)
	table := stockWords()
	for _, v := range table.Vocabularies() {
		written := map[string]bool{}
		for _, e := range agent.Emotions() {
			written[table.Word(v, e.Name)] = true
		}
		row := regexp.MustCompile("(?m)^\\| `" + string(v) + "` \\|[^|]*\\| ([^|]*) \\|$").FindStringSubmatch(text)
		if row == nil {
			t.Errorf("%s is not in the table", v)
			continue
		}
		words := strings.Fields(row[1])
		slices.Sort(words)
		if want := slices.Sorted(maps.Keys(written)); v != agent.VocabularyXiaozhi && v != agent.VocabularyVerbatim && !slices.Equal(words, want) {
			t.Errorf("%s: %v, in the code %v", v, words, want)
		}
	}
	frames := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, `{"type":"`) {
			continue
		}
		frames++
		if validate("event", []byte(line)) != nil {
			valid(t, "command", []byte(line))
			if _, bad := parseCommand([]byte(line), agent.VocabularyRFC, table, device.ParseID); bad != nil {
				t.Errorf("%s: %+v", line, bad)
			}
		}
	}
	if frames < 7 {
		t.Errorf("only %d frames are shown", frames)
	}
}

// TestTheSchemaIsServed, and knows every kind of frame that can be subscribed to.
func TestTheSchemaIsServed(t *testing.T) {
	h := newHarness(t)
	answer, body := h.ask(t, "GET", "/v1/vtuber/schema", "")
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "application/schema+json" || body != string(schema) {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
	for _, kind := range append(feed.AllKinds(), "pong", "error", "subscribe", "ping", "ack", "answer") {
		if !strings.Contains(body, `"`+kind+`": {`) {
			t.Errorf("%s is not in it", kind)
		}
	}
	for _, wrong := range []string{`{"type":"agent_state","ts":1,"state":"dancing","session_id":"s"}`, `{"type":"pong"}`,
		`{"type":"emotion","ts":1,"session_id":"s","tag":"x","intensity":0}`} {
		if validate("event", []byte(wrong)) == nil {
			t.Errorf("%s passes", wrong)
		}
	}
}
