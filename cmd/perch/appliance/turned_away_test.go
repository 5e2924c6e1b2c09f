package appliance_test

import (
	"net/http"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
)

// TestRobotsThatAreTurnedAwayAreFound checks that the owner sees refused requests of robots with the cause, and that a
// browser at the robots' address is not recorded.
func TestRobotsThatAreTurnedAwayAreFound(t *testing.T) {
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	robot := []string{"Device-Id", "a0:b1:c2:d3:e4:f5", "Client-Id", "c"}
	token := h.Token("/xiaozhi/ota/", robot...)
	if status, text := h.Request(http.MethodGet, "/xiaozhi/ota/", "", "Accept", "text/html,*/*", "User-Agent", "Mozilla/5.0 Firefox/140.0"); status != http.StatusOK ||
		!strings.Contains(text, "<html") {
		t.Errorf("a browser gets %d %s", status, text)
	}
	if _, text := h.Owner(http.MethodGet, "/api/v1/refused", ""); strings.TrimSpace(text) != "[]" {
		t.Errorf("refused are %s", text)
	}
	h.Expect(http.StatusMisdirectedRequest, "allowed_hosts", http.MethodPost, "/xiaozhi/ota/", "{}", append(robot, "Host", "someone.tunnel.example")...)
	h.Expect(http.StatusUpgradeRequired, "proxy", http.MethodGet, "/xiaozhi/v1/", "", append(robot, "Authorization", "Bearer "+token)...)
	_, text := h.Owner(http.MethodGet, "/api/v1/refused", "")
	for _, want := range []string{"unknown_host", "someone.tunnel.example", "allowed_hosts", "no_upgrade", "a0:b1:c2:d3:e4:f5"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}
