package thinker

import "testing"

func TestCompleteSchema(t *testing.T) {
	for schema, want := range map[string]string{
		``:                                   ``,
		`null`:                               `null`,
		`{"type":"object"}`:                  `{"properties":{},"type":"object"}`,
		`{"properties":{}}`:                  `{"properties":{},"type":"object"}`,
		`{"type":"object","required":["q"]}`: `{"properties":{},"type":"object"}`,
		`{"type":"object","properties":{"q":true},"required":["q","r"]}`:                    `{"properties":{"q":{}},"required":["q"],"type":"object"}`,
		`{"type":"object","properties":{"q":{"type":"array"}}}`:                             `{"properties":{"q":{"items":{},"type":"array"}},"type":"object"}`,
		`{"type":"object","properties":{"q":{"type":["array","null"]}}}`:                    `{"properties":{"q":{"items":{},"type":["array","null"]}},"type":"object"}`,
		`{"type":"object","properties":{"q":{"type":"array","items":{"type":"object"}}}}`:   `{"properties":{"q":{"items":{"properties":{},"type":"object"},"type":"array"}},"type":"object"}`,
		`{"type":"object","properties":{"q":{"anyOf":[{"type":"array"},{"type":"null"}]}}}`: `{"properties":{"q":{"anyOf":[{"items":{},"type":"array"},{"type":"null"}]}},"type":"object"}`,
	} {
		if got := string(completeSchema([]byte(schema))); got != want {
			t.Errorf("%s becomes %s, want %s", schema, got, want)
		}
	}
}
