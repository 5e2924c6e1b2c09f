package main

import (
	"net/http"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/gateway/admin"
)

// TestTheNetworkIsSearched in the time there is, here on the loopback interface alone,
// and an empty answer has lists.
func TestTheNetworkIsSearched(t *testing.T) {
	c := appliancetest.Config()
	c.MDNS.Interfaces = []string{"lo"}
	h := appliancetest.Start(t, c, t.TempDir())
	var found admin.Found
	began := time.Now()
	h.Admin(http.MethodGet, "/api/v1/found", "", &found)
	if took := time.Since(began); took > 6*time.Second || found.Wyoming == nil || found.Ollama == nil || found.HomeAssistant == nil {
		t.Errorf("after %s: %+v", took, found)
	}
	h.Expect(http.StatusUnauthorized, "", http.MethodGet, "/api/v1/found", "")
}
