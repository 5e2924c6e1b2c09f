package e2e

import (
	"net/http"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// TestARobotMakesAGesture: the command robot gesture moves the head of the simulated robot. It fails for a robot that
// is not connected and for an unknown gesture.
func TestARobotMakesAGesture(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	h.command("robot gesture a0b1c2d3e4f5 bow", 1, "not connected")
	r := h.StartCompanion(simrobot.Options{})
	h.WaitForTools(r.ID())
	h.command("robot gesture a0b1c2d3e4f5 somersault", 1, "there is no gesture")
	h.command("robot gesture a0b1c2d3e4f5", 0, "wave")
	h.command("robot gesture a0b1c2d3e4f5 bow", 0, "bow")
	for _, pitch := range []string{`"pitch":30`, `"pitch":5`, `"pitch":15`} {
		h.Await(r, "the head goes to "+pitch, appliancetest.Match(func(c simrobot.Called) bool {
			return strings.Contains(c.Name, "set_head_angles") && strings.Contains(c.Arguments, pitch)
		}))
	}
	if status, body := h.Owner(http.MethodPost, "/api/v1/devices/a0b1c2d3e4f5/gesture", `{"name":"nod","duration_ms":99999}`); status != 400 {
		t.Errorf("%d %s", status, body)
	}
}
