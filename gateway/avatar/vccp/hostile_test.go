package vccp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"perch/device"
	"perch/must"
)

// TestStrangeSchemas: a robot's description of its tools' arguments is a
// stranger's, and ends nothing but that tool's use.
func TestStrangeSchemas(t *testing.T) {
	h := newHarness(t)
	h.robots.tools = nil
	for i, kind := range []string{"", "string", "null", "OBJECT"} {
		h.robots.tools = append(h.robots.tools, device.Tool{Name: fmt.Sprintf("self.strange_%d", i), Schema: device.Schema{Type: kind}})
	}
	h.server.updateTools()
	m := h.model(t)
	strange := 0
	for tool, err := range m.Tools(t.Context(), nil) {
		must.Succeed(t, err)
		if !strings.Contains(tool.Name, "strange") {
			continue
		}
		strange++
		if schema, err := json.Marshal(tool.InputSchema); err != nil || string(schema) != `{"properties":{},"type":"object"}` {
			t.Errorf("%s takes %s (%v)", tool.Name, schema, err)
		}
	}
	if strange != 8 {
		t.Errorf("%d are offered", strange)
	}
}
