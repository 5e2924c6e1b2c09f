package config

import (
	"strings"
	"testing"

	"perch/must"
)

// entry returns a reference to an engine in the current list: from is the engine's index, and of the length of the list.
func entry(from, of int, kind string) map[string]any {
	return map[string]any{"from": float64(from), "of": float64(of), "kind": kind}
}

// TestAListOfEnginesIsArranged: a client that does not know the secrets of engines can move, add and remove
// engines. A change that refers to another version of the list is refused.
func TestAListOfEnginesIsArranged(t *testing.T) {
	const own = "brains:\n- {kind: openai, url: \"http://h/v1\", model: m, key: geheim-1} # ours\n- {kind: reflex}\n"
	o := overlaid(t, own)
	changes(t, o, map[string]any{"brains": []any{map[string]any{"kind": "none"}, entry(1, 2, "reflex"), entry(0, 2, "openai")}})
	const arranged = "brains:\n    - kind: none\n    - kind: reflex\n    - key: geheim-1\n      kind: openai\n      model: m\n      url: http://h/v1\n"
	if got := settingsOf(t, o); got != arranged {
		t.Errorf("the overlay is\n%s", got)
	}
	for _, wrong := range [][]any{
		{entry(0, 3, "openai")}, {entry(3, 3, "openai")}, {entry(-1, 3, "none")}, {entry(0, 4, "none")},
		{map[string]any{"from": 0.5, "of": 3.0, "kind": "none"}}, {map[string]any{"from": 0.0, "of": 3.0, "kind": "none", "url": "x"}},
		{map[string]any{"from": 0.0, "of": 3.0}},
	} {
		if _, faults, err := o.Change(map[string]any{"brains": wrong}); err != nil || len(faults) != 1 || faults[0].Key != "brains" {
			t.Errorf("%v: %v, %v", wrong, faults, err)
		}
	}
	if got := settingsOf(t, o); got != arranged {
		t.Errorf("after refusals the overlay is\n%s", got)
	}
	shown := must.Value(o.Read())(t)
	for _, k := range shown.Keys {
		if want := k.Key == "brains"; k.InFile != want && !strings.HasPrefix(k.Key, "brains.") {
			t.Errorf("that the file sets %s is %t", k.Key, k.InFile)
		}
	}
	changes(t, o, map[string]any{"brains": nil})
	if got := settingsOf(t, o); got != "" {
		t.Errorf("given back, the overlay is\n%s", got)
	}
}

// TestTheUnsetListIsArranged: a list that the configuration does not set can be arranged, including the
// synthesizer that is added for Japanese.
func TestTheUnsetListIsArranged(t *testing.T) {
	o := overlaid(t, "language: ja\n")
	changes(t, o, map[string]any{"speech.synthesizers": []any{entry(1, 2, "espeak"), entry(0, 2, "openjtalk")}})
	if got := settingsOf(t, o); got != "speech:\n    synthesizers:\n        - kind: espeak\n          voice: en-us\n        - kind: openjtalk\n" {
		t.Errorf("the overlay is\n%s", got)
	}
}

// TestAWrongOptionIsNamed: the fault of an engine has the key of the wrong option.
func TestAWrongOptionIsNamed(t *testing.T) {
	for _, c := range []struct{ list, engine, key string }{
		{"speech.recognizers", "{kind: wyoming, url: \"http://h\"}", "url"},
		{"speech.recognizers", "{kind: openai, url: h}", "url"},
		{"speech.synthesizers", "{kind: elevenlabs, key: k}", "voice"},
		{"speech.synthesizers", "{kind: openai, url: \"http://h\", rate: 1}", "rate"},
		{"speech.synthesizers", "{kind: espeak, voice: ../x}", "voice"},
		{"brains", "{kind: openai, url: \"http://h/v1\"}", "model"},
		{"brains", "{kind: openai, model: m}", "url"},
		{"brains", "{kind: openai, url: \"http://h/v1\", model: m, dialect: x}", "dialect"},
		{"brains", "{kind: openai, url: \"http://h/v1\", model: m, key_file: /nowhere}", "key_file"},
		{"brains", "{kind: anthropic, model: m}", "key"},
		{"brains", "{kind: acp}", "command"},
	} {
		o := overlaid(t, "")
		_, faults, err := o.Change(map[string]any{c.list + ".0": c.engine})
		if err != nil || len(faults) != 1 || faults[0].Key != c.list+".0."+c.key || faults[0].Message == "" {
			t.Errorf("%s: %v, %v", c.engine, faults, err)
		}
	}
}

// TestKindsOfEngines: each kind of engine has a summary of one or two sentences, and its options have the right
// types. Engines on the internet are billed.
func TestKindsOfEngines(t *testing.T) {
	types := map[string]string{}
	for list, kinds := range EngineKinds() {
		for _, k := range kinds {
			if k.Summary == "" || strings.Count(k.Summary, ". ") > 1 || !strings.HasSuffix(k.Summary, ".") {
				t.Errorf("%s of %s is %q", k.Kind, list, k.Summary)
			}
			types[list+" "+k.Kind] = k.Cost
			for _, o := range k.Options {
				types[k.About+"."+o.Key] = o.Type
			}
		}
	}
	for key, want := range map[string]string{
		"speech.recognizers sphinx": CostFree, "speech.synthesizers elevenlabs": CostBilled, "brains openai": "",
		"brains.openai.key": "secret", "brains.openai.key_file": "text", "brains.openai.dialect": "choice", "brains.openai.within": "duration",
		"brains.openai.vision": "bool", "brains.openai.max_tokens": "number", "brains.acp.command": "list", "brains.assist.token": "secret",
	} {
		if types[key] != want {
			t.Errorf("%s is %q, not %q", key, types[key], want)
		}
	}
	for url, want := range map[string]string{"http://192.168.1.9:1/v1": "", "http://nas.lan/v1": "", "http://nas/v1": "", "http://[fe80::1]/v1": "",
		"https://api.openai.com/v1": CostBilled, "https://8.8.8.8/v1": CostBilled} {
		c := must.Value(overlaid(t, "brains: [{kind: openai, model: m, url: \""+url+"\"}]\n").Load())(t)
		if got := c.Brains[0].Cost(); got != want {
			t.Errorf("%s costs %q, not %q", url, got, want)
		}
	}
}
