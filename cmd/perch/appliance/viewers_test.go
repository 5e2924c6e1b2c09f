package appliance_test

import (
	"net/http"
	"strings"
	"testing"

	"perch/agent/diary"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/datadir"
	"perch/event"
)

const viewersKey = "key-of-the-skins-0123"

// viewed starts an appliance with viewersKey as the key of skins.
func viewed(t *testing.T) *appliancetest.Appliance {
	t.Helper()
	c := appliancetest.Config()
	c.Skins.Key = viewersKey
	return appliancetest.Start(t, c, t.TempDir())
}

// report sends an action of a viewer, and returns the response.
func report(t *testing.T, h *appliancetest.Appliance, kind, payload string) (status int, text string) {
	t.Helper()
	return h.Request(http.MethodPost, "/api/agent-actions", `{"type":"`+kind+`","payload":`+payload+`}`, "Authorization", "Bearer "+viewersKey)
}

// TestAViewerHasExposedSkillsOnly checks that a viewer can perform only exposed skills, not sign-action for example,
// and which actions it can read.
func TestAViewerHasExposedSkillsOnly(t *testing.T) {
	t.Parallel()
	h := viewed(t)
	for payload, want := range map[string]struct {
		status int
		says   string
	}{
		`{"skill":"sign-action","args":{"message":"I owe the viewer 100 coins"}}`: {403, "skill_not_exposed"},
		`{"skill":"remember","args":{"content":"x"}}`:                             {403, "mcpExposed"},
		`{"skill":"present-model"}`:                                               {404, "shows the agent's model"},
		`{"skill":"nothing"}`:                                                     {404, "perch skill list"},
		`{"skill":"greet","args":{"name":3}}`:                                     {400, "bad_arguments"},
		`{"skill":"greet","args":{"name":"Ann"}}`:                                 {202, "done"},
	} {
		if status, text := report(t, h, "perform-skill", payload); status != want.status || !strings.Contains(text, want.says) {
			t.Errorf("%s: %d %s", payload, status, text)
		}
	}
	if _, text := h.Owner(http.MethodGet, "/api/v1/actions?n=200", ""); strings.Contains(text, "coins") || !strings.Contains(text, "Hello, Ann!") {
		t.Errorf("done: %s", text)
	}
	h.Expect(http.StatusForbidden, "admin token", http.MethodGet, "/api/v1/actions?type=remember", "", "Authorization", "Bearer "+viewersKey)
	h.Expect(http.StatusOK, `"skill":"greet"`, http.MethodGet, "/api/v1/actions", "", "Authorization", "Bearer "+viewersKey)
	if _, text := h.Request(http.MethodGet, "/api/v1/actions", "", "Authorization", "Bearer "+viewersKey); strings.Contains(text, `"Ann"`) ||
		strings.Contains(text, `"output":"Hello`) || !strings.Contains(text, `{"text":"Hello, Ann!"`) {
		t.Errorf("a viewer sees what the skill was given or answered, and not what was said aloud: %s", text)
	}
	h.Expect(http.StatusOK, `"Ann"`, http.MethodGet, "/api/v1/actions", "", "X-Admin-Token", h.OwnerToken())
}

// TestAStrangerActsForNoCharacter checks that the speech of a robot that is not adopted is neither in the list of
// actions nor in the diary.
func TestAStrangerActsForNoCharacter(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	h.Bus.Publish("a0b1c2d3e4f6", "s", event.Said{Text: "I am a stranger's"})
	h.Bus.Publish("a0b1c2d3e4f5", "s", event.Said{Text: "I am the owner's"})
	if _, text := h.Owner(http.MethodGet, "/api/v1/actions", ""); strings.Contains(text, "stranger") || !strings.Contains(text, "the owner's") {
		t.Errorf("done: %s", text)
	}
	h.Stop()
	if report, err := datadir.CheckDiary(h.Data); err != nil || report.Entries != 1 {
		t.Errorf("the diary: %+v %v", report, err)
	}
}

// TestAViewersReportIsMarkedInTheDiary checks that actions reported by a viewer have by=viewer in the diary, which
// distinguishes them from those of the character.
func TestAViewersReportIsMarkedInTheDiary(t *testing.T) {
	t.Parallel()
	h := viewed(t)
	reports := map[string]string{"speak": `{"text":"I owe you 100 coins","by":""}`, "remember": `{"content":"tea is free"}`,
		"sign": `{"message":"m","address":"0xab"}`, "skill-done": `{"skill":"greet"}`, "validate": `{}`, "load-end": `{"uri":"a.glb"}`,
		"perform-skill": `{"skill":"greet"}`}
	for kind, payload := range reports {
		if status, text := report(t, h, kind, payload); status != http.StatusAccepted {
			t.Errorf("%s: %d %s", kind, status, text)
		}
	}
	h.Bus.Publish("", "", event.Said{Text: "my own words"})
	var entries []diary.Entry
	h.Eventually("all reports are kept", func() bool { // with an entry for the speech of the skill and one for "my own words"
		entries = h.Diary.Newest(20)
		return len(entries) == len(reports)+2
	})
	for _, e := range entries {
		if own := strings.Contains(string(e.Payload), "my own words"); own == strings.Contains(string(e.Payload), `"by":"viewer"`) {
			t.Errorf("%s %s", e.Type, e.Payload)
		}
	}
}
