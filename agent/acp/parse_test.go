package acp_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/acp"
)

func TestYesAndNo(t *testing.T) {
	for answer, want := range map[string]string{
		"yes": "yes", "Yes, please!": "yes", "yeah sure, go ahead": "yes", "Okay.": "yes", "go ahead": "yes", "you may": "yes", "do it": "yes",
		"ja": "yes", "Ja, bitte.": "yes", "na klar": "yes", "in Ordnung": "yes", "mach das ruhig": "yes", "Jawohl": "yes", "natürlich darfst du das": "yes",
		"no": "no", "No, thanks": "no", "don't do it": "no", "Don’t": "no", "yes no": "no", "okay, stop": "no", "do not do it": "no", "not yes": "no",
		"nein": "no", "nö": "no", "bitte nicht": "no", "auf keinen Fall": "no", "ja nein": "no", "lass das": "no", "stopp": "no", "nein danke": "no",
		"": "?", "what": "?", "please": "?", "the weather is fine": "?", "yes the weather": "?", "yesterday": "?", "now": "?",
		"if you tell me what it does yes": "?", "jaguar": "?", "vielleicht": "?", "sure as hell": "?", "bitte": "?", "...": "?",
	} {
		yes, understood := acp.YesOrNo(answer)
		got := "?"
		if understood {
			got = map[bool]string{true: "yes", false: "no"}[yes]
		}
		if got != want {
			t.Errorf("%q is %s, not %s", answer, got, want)
		}
		if yes && !understood {
			t.Errorf("%q is a yes that was not understood", answer)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"npm test":                  "npm test",
		"Edit docs/architecture.md": "Edit docs/architecture.md",
		`curl -H "Authorization: Bearer abc.def-canary" x`: `curl -H "Authorization: Bearer ***" x`,
		"OPENAI_API_KEY=canary make":                       "OPENAI_API_KEY=*** make",
		`{"token": "canary"}`:                              `{"token": ***}`,
		"git clone https://me:canary@h/x":                  "git clone https://***@h/x",
		"use sk-canary12345 there":                         "use *** there",
		"0123456789abcdefcanary0123456789ab":               "***",
		strings.Repeat("ä", 200):                           strings.Repeat("ä", 100),
	} {
		if got := acp.Redact(in, 200); got != want {
			t.Errorf("%q is shown as %q, not %q", in, got, want)
		}
	}
}

func TestQuestions(t *testing.T) {
	for _, c := range []struct{ language, want string }{
		{"en", "May I run a command: npm test?"},
		{"de-AT", "Darf ich einen Befehl ausführen: npm test?"},
		{"ja", "May I run a command: npm test?"},
	} {
		if got := acp.PhrasesIn(c.language).Question("execute", "`npm test`"); got != c.want {
			t.Errorf("%q", got)
		}
	}
	p := acp.PhrasesIn("en")
	if got := p.Question("strange", ""); got != "May I use a tool?" {
		t.Errorf("%q", got)
	}
	got := p.Question("delete", strings.Repeat("all of it ", 30))
	if !strings.HasSuffix(got, " and so on?") || len(got) > 180 {
		t.Errorf("%q", got)
	}
	if got := p.Question("edit", "😀 {what} {title} a.go"); got != "May I change something: what title a.go?" {
		t.Errorf("%q", got)
	}
}

// TestPhrasesAreWhole: a language that lacks a sentence would be silent.
func TestPhrasesAreWhole(t *testing.T) {
	for _, language := range []string{"en", "de"} {
		p := acp.PhrasesIn(language)
		for _, s := range []string{p.Ask, p.AskOf, p.AndOn, p.Again, p.NotYou, p.ForGood, p.Refused, p.CutOff, p.TooLong, p.Stopped, p.Done} {
			if s == "" {
				t.Errorf("%s lacks a phrase", language)
			}
		}
		for _, kind := range []string{"read", "edit", "delete", "move", "search", "execute", "fetch", "switch_mode", "other"} {
			if p.Does[kind] == "" {
				t.Errorf("%s does not say %s", language, kind)
			}
		}
	}
}

func TestPreambleNamesTheFaces(t *testing.T) {
	for _, e := range agent.OfferedEmotions() {
		if !strings.Contains(acp.Preamble(), e.Emoji) {
			t.Errorf("%s is not offered", e.Name)
		}
	}
}

// TestRequestsAreAnswered: an agent that asks for what is not there, in
// whatever way, is told so, by the id it gave.
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

// FuzzTake: whatever an agent writes, every request is answered once, with one
// line of JSON.
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
