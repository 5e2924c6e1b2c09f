package e2e

import (
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
)

// TestTheDoctorSaysEachThingOnce of an appliance that runs: no engine twice,
// and of a brain that is well what it answers when it is asked what it knows.
func TestTheDoctorSaysEachThingOnce(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	_, out, _ := commandLine(t, "doctor", "--data", h.Data) // whether anything else has the default ports is not of this
	times := map[string]int{}
	for line := range strings.Lines(out) {
		if part := strings.TrimSpace(line[min(6, len(line)-1):]); strings.HasPrefix(line, "ok  ") || strings.HasPrefix(line, "FAIL") ||
			strings.HasPrefix(line, "WARN") {
			name, _, _ := strings.Cut(part, "  ")
			times[name]++
		}
	}
	for _, part := range []string{"brain reflex", "recognizer sphinx", "synthesizer espeak", "mqtt", "disk", "clock"} {
		if times[part] != 1 {
			t.Errorf("%s is told of %d times:\n%s", part, times[part], out)
		}
	}
	if !strings.Contains(out, `"It is `) || strings.Contains(out, "1 robots") || !strings.Contains(out, "with no robot") {
		t.Errorf("it says\n%s", out)
	}
}
