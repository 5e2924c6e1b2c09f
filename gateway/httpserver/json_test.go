package httpserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"perch/gateway/httpserver"
)

func TestWhyNotJSON(t *testing.T) {
	for body, want := range map[string]string{
		`{"args":{"query":7}}`: "args.query may not be a JSON number",
		`{"args":"x"}`:         "args may not be a JSON string",
		`[1]`:                  "it is a JSON array, not an object",
		`{"args":`:             "it is not JSON at byte 8: unexpected end",
		`hello`:                "it is not JSON at byte 1: invalid character",
	} {
		var into struct {
			Args struct {
				Query string `json:"query"`
			} `json:"args"`
		}
		got := httpserver.WhyNotJSON(json.Unmarshal([]byte(body), &into))
		if !strings.HasPrefix(got, want) || strings.Contains(got, "Go ") {
			t.Errorf("%s: %q", body, got)
		}
	}
}
