package reflex_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perch/agent/reflex"
	"perch/language"
	"perch/must"
)

// TestHintsOfThePageAreUnderstood: what the page proposes to say to a robot, in quotation
// marks, is understood in that language.
func TestHintsOfThePageAreUnderstood(t *testing.T) {
	quoted := regexp.MustCompile(`[“„«「](.+?)[”“»」]`)
	for _, tag := range language.All() {
		text := must.Value(os.ReadFile(filepath.Join("../../language", string(tag), "page.json")))(t)
		var page map[string]map[string]string
		must.Succeed(t, json.Unmarshal(text, &page))
		b := must.Value(reflex.Load(string(tag), ""))(t)
		for view, intent := range map[string]string{"timers": "timer_set", "memory": "remember_place"} {
			hint := quoted.FindStringSubmatch(page[view]["noneHint"])
			if hint == nil {
				t.Errorf("%s: %s.noneHint proposes nothing: %s", tag, view, page[view]["noneHint"])
				continue
			}
			if got, _, _ := strings.Cut(b.Recognized(strings.TrimSpace(hint[1])), " "); got != intent {
				t.Errorf("%s: %q of the page is recognized as %q, not as %s", tag, hint[1], got, intent)
			}
		}
	}
}
