package skin

import (
	"net/http"
	"strings"
	"testing"
)

// TestSkinsAndStrangers: a robot that was not adopted by name takes nothing from a
// skin, and its talk, once joined, has a stranger's rights: what was said to it before
// must not act in the owner's home.
func TestSkinsAndStrangers(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = said()
	for robot, guest := range map[string]bool{string(robotA): false, string(stranger): true} {
		for _, session := range []string{"robot:" + robot, "vtb_" + robot} {
			answer, body := h.ask(t, http.MethodPost, chatPath, `{"messages":[{"role":"user","content":"Hi."}]}`, "X-Session-Id", session)
			if answer.StatusCode != 200 {
				t.Fatal(body)
			}
			turns := h.brain.turns()
			if turn := turns[len(turns)-1]; turn.Untrusted != guest || turn.Stranger() != guest || string(turn.Robot) != robot {
				t.Errorf("%s is answered as %+v", session, turn)
			}
		}
	}
	if answer, body := h.ask(t, http.MethodPost, notificationsPath, `{"text":"tea","robot":"`+string(stranger)+`"}`); answer.StatusCode != 404 ||
		!strings.Contains(body, "perch robot adopt") {
		t.Errorf("a stranger is answered: %d %s", answer.StatusCode, body)
	}
}
