package e2e

import (
	"net/http"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/gateway/owner/admin"
)

// TestTheNetworkIsSearched, here on the loopback interface alone, and an empty answer has
// lists.
func TestTheNetworkIsSearched(t *testing.T) {
	c := appliancetest.Config()
	c.MDNS.Interfaces = []string{"lo"}
	h := appliancetest.Start(t, c, t.TempDir())
	var found admin.Found
	h.Admin(http.MethodGet, "/api/v1/found", "", &found)
	if found.Wyoming == nil || found.Ollama == nil || found.HomeAssistant == nil {
		t.Errorf("%+v", found)
	}
	h.Expect(http.StatusUnauthorized, "", http.MethodGet, "/api/v1/found", "")
}
