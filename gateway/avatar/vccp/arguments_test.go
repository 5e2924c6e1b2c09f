package vccp

import (
	"strings"
	"testing"
)

// TestArgumentsAreRefusedInWords: a model that writes something else than
// belongs there is answered with the key, and with nothing of this program's types.
func TestArgumentsAreRefusedInWords(t *testing.T) {
	h := newHarness(t)
	m := h.model(t)
	wave := object{"type": "action", "category": "wave", "data": object{}}
	for _, c := range []struct {
		tool      string
		arguments any
		want      string
	}{
		{"register-agent", object{"robto": string(robotA)}, `"robto"`},
		{"register-agent", object{"robot": string(robotA), "name": "Momo"}, `"name"`},
		{"register-agent", object{strings.Repeat("x", 500): 1}, `"xxxx`},
		{"register-agent", object{"robot": 7}, "robot may not be a JSON number"},
		{"register-agent", []string{string(robotA)}, "it is a JSON array, and an object belongs here"},
		{"get-perception", object{"category": []string{"object"}}, "category may not be a JSON array"},
		{"get-perception", "object", "it is a JSON string, and an object belongs here"},
		{"play-action", object{"action": object{"type": 7, "category": "wave", "data": object{}}}, "type may not be a JSON number"},
		{"play-action", []any{wave}, "it is a JSON array, and an object belongs here"},
		{"a0b1c2d3e4f5_camera_take_photo", []string{"who?"}, "it is a JSON array, and an object belongs here"},
	} {
		text, failed := m.call(c.tool, c.arguments)
		if !failed || !strings.Contains(text, c.want) || len(text) > 400 {
			t.Errorf("%s %.60v: %t %s", c.tool, c.arguments, failed, text)
		}
		if strings.Contains(text, "Go ") || strings.Contains(text, "json:") || strings.Contains(text, "struct") {
			t.Errorf("%s %.60v is answered with our types: %s", c.tool, c.arguments, text)
		}
	}
	if asked := h.robots.take(); len(asked) != 0 {
		t.Errorf("a robot is asked %q", asked)
	}
	if known := len(h.server.agents); known != 0 {
		t.Errorf("%d are registered all the same", known)
	}
	m.must("register-agent", object{"robot": string(robotA)})
}
