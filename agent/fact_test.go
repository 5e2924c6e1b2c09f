package agent_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"perch/agent"
	"perch/must"
)

// TestFacts tests that the text of a fact may have any of four names, and that invalid facts
// are refused.
func TestFacts(t *testing.T) {
	for _, name := range []string{"text", "fact", "content", "body"} {
		var f agent.Fact
		must.Succeed(t, json.Unmarshal([]byte(`{"`+name+`":" Ann likes\ntea ","key":"ann","name":"Ann","description":"what she likes","type":"user","tags":["tea"],
			"important":true,"expires":"2027-01-02T03:04:05Z","context":{"screen":"kitchen"}}`), &f))
		got, err := f.Entry()
		want := agent.Entry{Key: "ann", Name: "Ann", Description: "what she likes", Type: "user", Body: "Ann likes tea", Tags: []string{"tea"},
			Important: true, Expires: got.Expires, Context: json.RawMessage(`{"screen":"kitchen"}`)}
		if err != nil || !reflect.DeepEqual(got, want) || got.Expires.Year() != 2027 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for sentence, body := range map[string]string{
		"the text is empty": `{"text":" \n"}`, "has 1001 bytes, and at most 1000": `{"body":"` + strings.Repeat("x", 1001) + `"}`,
		"have at most 200 bytes": `{"text":"x","key":"` + strings.Repeat("k", 201) + `"}`, "type is one of": `{"text":"x","type":"gossip"}`,
		"context is an object": `{"text":"x","context":[1]}`,
	} {
		var f agent.Fact
		must.Succeed(t, json.Unmarshal([]byte(body), &f))
		if _, err := f.Entry(); !errors.Is(err, agent.ErrEntry) && !errors.Is(err, agent.ErrText) || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
