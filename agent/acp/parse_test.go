package acp_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"perch/agent/acp"
)

// TestRequestsAreAnswered tests the responses to requests that are not supported or not valid,
// and that other messages get no response.
func TestRequestsAreAnswered(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{}}`:            `"id":7,"error":{"code":-32601`,
		`{"jsonrpc":"2.0","id":"a","method":"terminal/create","params":{}}`:            `"id":"a","error":{"code":-32601`,
		`{"id":1,"method":"elicitation/create"}`:                                       `"id":1,"error":{"code":-32601`,
		`{"id":1,"method":"session/request_permission","params":{"sessionId":"gone"}}`: `"id":1,"result":{"outcome":{"outcome":"cancelled"}}`,
		`{"id":1,"method":"session/request_permission","params":{"toolName":"x"}}`:     `"id":1,"result":{"approved":false}`,
		`{"id":1,"method":"session/request_permission","params":[]}`:                   `"id":1,"error":{"code":-32602`,
		`{"id":null,"method":"fs/read_text_file"}`:                                     ``,
		`{"method":"session/update","params":{"sessionId":"x","update":{}}}`:           ``,
		`{"id":1,"result":{}}`: ``,
		`[]`:                   ``, `null`: ``, `"x"`: ``, `{`: ``,
	} {
		got := bytes.Join(acp.Take([]byte(line)), nil)
		if !bytes.Contains(got, []byte(want)) || want == "" && len(got) > 0 {
			t.Errorf("%s is answered by %s", line, got)
		}
	}
}

// FuzzTake tests that each line of an agent causes at most one response, which is one line of
// JSON.
func FuzzTake(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"a","kind":"allow_once"}]}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":"execute","status":"pending","rawInput":[1],"_meta":{"claudeCode":{"toolName":"Task"}}}}}`,
		`{"jsonrpc":"2.0","method":"session/event","params":{"session_id":"s","type":"chunk","content":"x"}}`,
		`{"id":{},"method":"a"}`, `{"id":1,"error":{"code":1,"message":"m"}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		answers := acp.Take(line)
		if len(answers) > 1 {
			t.Fatalf("%d answers", len(answers))
		}
		for _, a := range answers {
			if !json.Valid(a) || bytes.IndexByte(a, '\n') != len(a)-1 {
				t.Fatalf("%q", a)
			}
		}
		_, _, _ = acp.ParseUpdate(line)
		_, _, _ = acp.ParseEvent(line)
		acp.ParsePermission(line)
	})
}
