package e2e

import (
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// TestAdoption: a robot that is new here waits, is listed, is let in by the
// code it shows or by its id, and goes on without a restart.
func TestAdoption(t *testing.T) {
	t.Parallel()
	for way, by := range map[string]func(w simrobot.AwaitsAdoption) string{
		"by its code": func(w simrobot.AwaitsAdoption) string { return w.Code },
		"by its id":   func(simrobot.AwaitsAdoption) string { return "A0:B1:C2:D3:E4:F5" },
	} {
		t.Run(way, func(t *testing.T) {
			c := appliancetest.Config()
			c.Adoption = "code"
			h := open(t, c, t.TempDir())
			perch := func(args ...string) string {
				code, out := h.byNetwork(args...)
				if code != exitDone {
					t.Errorf("perch %s: %d %s", args, code, out)
				}
				return out
			}
			waited, booted := 0, 0
			h.Robot(simrobot.Options{Observe: func(e simrobot.Observation) {
				switch e := e.(type) {
				case simrobot.CheckedIn:
					booted++
				case simrobot.AwaitsAdoption:
					waited++
					if list := perch("robot list"); len(e.Code) != 6 ||
						!strings.Contains(list, "perch robot adopt a0b1c2d3e4f5, or the code it shows, "+e.Code) {
						t.Errorf("it shows %q, and the list is %s", e.Code, list)
					}
					if told := perch("robot adopt", by(e)); !strings.Contains(told, "a0b1c2d3e4f5 is adopted") {
						t.Errorf("told %s", told)
					}
				}
			}})
			if waited != 1 || booted != 2 || !h.Robots.Trusts("a0b1c2d3e4f5") {
				t.Errorf("it waited %d times, checked in %d times, and is trusted: %t", waited, booted, h.Robots.Trusts("a0b1c2d3e4f5"))
			}
			if list := perch("robot list"); strings.Contains(list, "waits") {
				t.Errorf("the list is %s", list)
			}
		})
	}
}
