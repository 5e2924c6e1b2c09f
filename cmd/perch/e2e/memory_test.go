package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/cmd/perch/appliancetest"
	"perch/must"
)

// TestMemoryCommands: the commands memory list, stats, show and forget.
func TestMemoryCommands(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	if out := h.command("memory list", 0); out != "no entries\n" {
		t.Errorf("an empty memory: %q", out)
	}
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.Local)
	tea, err := h.Memory.Remember(agent.Entry{
		Name: "tea", Type: agent.MemoryFeedback, Tags: []string{"Drinks"}, Body: "Anna drinks\x1b[2J green tea", Robot: "a0b1c2d3e4f5"}, at)
	must.Succeed(t, err)
	cat, err := h.Memory.Remember(agent.Entry{
		Name: "cat", Type: agent.MemoryProject, Important: true, Body: "the cat is called Miso"}, at.Add(time.Second))
	must.Succeed(t, err)
	teaLine := tea.ID + "  2026-11-22 12:00:00  Anna drinks[2J green tea\n"
	for line, want := range map[string]string{
		"memory list":                              cat.ID + "  2026-11-22 12:00:01  the cat is called Miso\n" + teaLine,
		"memory list green tea":                    teaLine,
		"memory list --type feedback --tag drinks": teaLine,
		"memory list --type user":                  "no entries\n",
		"memory stats":                             "2 of at most 2000 entries, 1 important\n     1  feedback\n     1  project\n     1  drinks\n",
		"memory list coffee":                       "no entries\n",
		"memory show " + cat.ID:                    "id        " + cat.ID + "\nname      cat\ntype      project\ntext      the cat is called Miso\nimportant yes\ncreated   2026-11-22 12:00:01\n",
	} {
		if out := h.command(line, 0); out != want {
			t.Errorf("%s prints\n%q, want\n%q", line, out, want)
		}
	}
	for _, verb := range []string{"show", "forget"} {
		h.command("memory "+verb+" nothing", 1, agent.ErrNoEntry.Error())
	}
	if out := h.command("memory forget "+tea.ID, 0); out != tea.ID+" is forgotten\n" || len(h.Memory.Search("", time.Now())) != 1 {
		t.Errorf("forget prints %q", out)
	}
}

// TestMemoryAdd: the command memory add stores a fact with all values of its flags.
func TestMemoryAdd(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	id := strings.TrimSpace(h.command("memory add --type feedback --tag #Lamp --tag evening --important --expires 36h no bright light", 0))
	found, err := h.Memory.Query(agent.Query{}, time.Now())
	if err != nil || len(found) != 1 || found[0].ID != id || found[0].Body != "no bright light" || found[0].Type != agent.MemoryFeedback ||
		!found[0].Important || strings.Join(found[0].Tags, " ") != "lamp evening" || found[0].Source != "owner" ||
		time.Until(found[0].Expires).Round(time.Hour) != 36*time.Hour {
		t.Errorf("%s: %+v, %v", id, found, err)
	}
	for line, says := range map[string]string{
		"memory add --type gossip x": "type is one of user, feedback", "memory add --tag two%words x": "a tag is one word",
		"memory add --expires 2045-01-01 x": "within ten years",
	} {
		h.command(line, 1, says)
	}
	for _, when := range []string{"soon", "2001-01-01", "-1h", "0001-01-01T00:00:00Z"} {
		h.command("memory add x --expires="+when, 2, "is not a future time")
	}
}

// TestNotificationList: the command notification list prints the open notifications.
func TestNotificationList(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	if out := h.command("notification list", 0); out != "there are no notifications\n" {
		t.Errorf("without any: %q", out)
	}
	id := strings.TrimSpace(h.command("notification send --urgency low the laundry is done", 0))
	out := h.command("notification list", 0)
	if fields := strings.Fields(out); !strings.HasPrefix(out, id+"  ") || len(fields) < 5 || fields[4] != "low" ||
		!strings.HasSuffix(out, " the laundry is done\n") {
		t.Errorf("it prints %q", out)
	}
	h.Expect(http.StatusUnauthorized, "", http.MethodGet, "/api/v1/notifications", "")
}
