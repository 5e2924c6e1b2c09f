package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/event"
	"perch/gateway/owner/admin"
	"perch/must"
)

// TestConnectionsAreShown: the API shows a skin, a coding agent and the state of the broker's connection while they
// are connected.
func TestConnectionsAreShown(t *testing.T) {
	c := appliancetest.Config()
	c.Skins.Key = appliancetest.Key
	h := appliancetest.Start(t, c, t.TempDir())
	connections := func() (all admin.Connections) {
		t.Helper()
		h.Admin(http.MethodGet, "/api/v1/connections", "", &all)
		return all
	}
	if _, text := h.Owner(http.MethodGet, "/api/v1/connections", ""); !strings.HasPrefix(text,
		`{"skins":[],"agents":[],"homeassistant":{"ok":false,"note":"turned off by mqtt.broker"`) {
		t.Errorf("none: %s", text)
	}
	changes := func() (n int) {
		events := h.Bus.ReadFrom(1)
		for range h.Bus.Seq() {
			e := must.Value(events.Next(t.Context()))(t)
			if e.Event == (event.Changed{What: "connections"}) {
				n++
			}
		}
		return n
	}
	began := time.Now()
	w := h.Watch(appliancetest.Everything)
	h.Expect(http.StatusOK, "ok", http.MethodPost, "/state?agent=codex", `{"state":"working","session_id":"<b>one</b>","tool_name":"Bash"}`,
		"Authorization", "Bearer "+appliancetest.Key, "Content-Type", "application/json")
	h.Eventually("the skin is shown", func() bool { return len(connections().Skins) == 1 })
	if n := changes(); n != 1 {
		t.Errorf("%d changes were published when a skin came", n)
	}
	all := connections()
	if s := all.Skins[0]; s.Kind != "skin" || !strings.HasPrefix(s.Address, "127.0.0.1:") || s.Since.Sub(began).Abs() > time.Minute {
		t.Errorf("the skin is %+v", s)
	}
	if len(all.Agents) != 1 || all.Agents[0].ID != "<b>one</b>" || all.Agents[0].Name != "codex" || all.Agents[0].State != "working" ||
		all.Agents[0].Session != "coding-1" || all.Agents[0].Since.Sub(began).Abs() > time.Minute {
		t.Errorf("the agents are %+v", all.Agents)
	}
	w.Leave()
	h.Expect(http.StatusOK, "ok", http.MethodPost, "/state?agent=codex", `{"state":"sleeping","event":"SessionEnd","session_id":"<b>one</b>"}`,
		"Authorization", "Bearer "+appliancetest.Key, "Content-Type", "application/json")
	h.Eventually("they are gone", func() bool { all := connections(); return len(all.Skins)+len(all.Agents) == 0 })
	h.Eventually("it is published that the skin went", func() bool { return changes() == 2 })
}
