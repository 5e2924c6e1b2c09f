package e2e

import (
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
)

// TestALockedDoorSaysWhereItsKeyIs, and no more: neither the key nor where on this
// machine the data directory is.
func TestALockedDoorSaysWhereItsKeyIs(t *testing.T) {
	t.Chdir(t.TempDir())
	h := open(t, appliancetest.Config(), "data") // as where it is started without the package
	for _, path := range []string{"/admin/devices", "/xiaozhi/admin/devices", "/api/v1/status", "/metrics"} {
		status, text := h.Request("GET", path, "")
		if status != 401 || !strings.Contains(text, "the file admin-token in the data directory") || strings.Contains(text, h.Data+"/") ||
			strings.Contains(text, h.Secret("admin-token")) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}
