package sphinx

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"perch/must"
	"perch/voice"
)

func TestCheckNamesEveryFault(t *testing.T) {
	tests := map[string]struct {
		rules []Rule
		want  []string // parts of the message, in order
	}{
		"unknown word": {
			[]Rule{{"top", "good night | frobnicate", "en.yaml:12"}},
			[]string{`en.yaml:12: the word "frobnicate" is not in the recognizer's dictionary; spell it`},
		},
		"undefined rule": {
			[]Rule{{"top", "look <somewhere>", "en.yaml:3"}},
			[]string{"en.yaml:3: the rule <somewhere> is not defined"},
		},
		"every fault, not the first": {
			[]Rule{{"top", "qqxz <nowhere>", "a:1"}, {"more", "(stop", "b:2"}},
			[]string{`b:2: the rule <more> cannot be read: "(" is not closed by ")"`, "a:1: the rule <nowhere>", `a:1: the word "qqxz"`},
		},
		"a rule of itself": {[]Rule{{"top", "<b> stop", "a:1"}, {"b", "[<top>]", "a:2"}},
			[]string{"a:1: the rule <top> is part of itself"}},
		"defined twice": {[]Rule{{"top", "stop", "a:1"}, {"top", "go", "a:2"}},
			[]string{"a:2: the rule <top> is already defined, at a:1"}},
		"no top rule":                {[]Rule{{"other", "stop", "a:1"}}, []string{"the top rule <top> is not defined"}},
		"a name for the library":     {[]Rule{{"top", "stop", "a:1"}, {"NULL", "go", "a:2"}}, []string{`a:2: "NULL" is not the name of a rule`}},
		"upper case":                 {[]Rule{{"top", "Stop", "a:1"}}, []string{"'S' cannot be part of a word"}},
		"the end of the rule":        {[]Rule{{"top", "stop; public <x> = go", "a:1"}}, []string{"';' cannot be part of a word"}},
		"a comment":                  {[]Rule{{"top", "stop // go", "a:1"}}, []string{"'/' cannot be part of a word"}},
		"a loop":                     {[]Rule{{"top", "(stop)*", "a:1"}}, []string{"'*' cannot be part of a word"}},
		"a tag":                      {[]Rule{{"top", "stop {x}", "a:1"}}, []string{"'{' cannot be part of a word"}},
		"an empty alternative":       {[]Rule{{"top", "stop | ", "a:1"}}, []string{"an alternative is empty"}},
		"an empty body":              {[]Rule{{"top", "", ""}}, []string{"rule top: the rule <top> cannot be read: an alternative is empty"}},
		"what closes nothing":        {[]Rule{{"top", "stop)", "a:1"}}, []string{`")" has no opening bracket`}},
		"the wrong bracket":          {[]Rule{{"top", "(stop]", "a:1"}}, []string{`"(" is not closed by ")"`}},
		"a name that is none":        {[]Rule{{"top", "<no name>", "a:1"}}, []string{`"<" does not begin the name of a rule`}},
		"groups without end":         {[]Rule{{"top", strings.Repeat("(", 500) + "stop", "a:1"}}, []string{"groups within groups"}},
		"a body without end":         {[]Rule{{"top", strings.Repeat("stop ", 5000), "a:1"}}, []string{"longer than"}},
		"more than a grammar can":    {explosive(), []string{"more than 10000 words"}},
		"nothing but optional parts": {hesitant(), []string{"x:1: the rule <top> has more than 100 optional parts"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Check(Grammar{Top: []string{"top"}, Rules: test.rules}, Model)
			if err == nil {
				t.Fatal("no fault found")
			}
			rest := err.Error()
			for _, want := range test.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%q does not say %q, in order", err, want)
				}
				rest = after
			}
		})
	}
}

func TestCheckAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		answer []string
		rules  []Rule
		want   string
	}{
		"unknown word": {[]string{"yes"}, []Rule{{"yes", "yesssir", "en.yaml:7"}},
			`en.yaml:7: the word "yesssir" is not in the recognizer's dictionary`},
		"undefined rule":          {[]string{"no"}, nil, "the answer rule <no> is not defined"},
		"more than a grammar can": {[]string{"top"}, explosive(), "more than 10000 words when its answer rules"},
		"too many optional parts": {[]string{"top2"}, []Rule{{"top2", "<a> <a> <a> <a>", "x:3"}, hesitant()[1]},
			"x:3: the rule <top2> has more than 100 optional parts"},
	} {
		g := Grammar{Top: []string{"go"}, Answer: test.answer, Rules: append([]Rule{{"go", "go", "x:0"}}, test.rules...)}
		if err := Check(g, Model); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v does not say %q", name, err, test.want)
		}
	}
}

// hesitant returns a grammar with 5 x 30 optional parts in a row. The library's
// time grows with the cube of this number.
func hesitant() []Rule {
	return []Rule{{"top", "<a> <a> <a> <a> <a>", "x:1"}, {"a", strings.Repeat("[stop] ", 30), "x:2"}}
}

// explosive returns a few rules that expand to 2^16 words.
func explosive() []Rule {
	rules := []Rule{{"top", "<r0>", "x:0"}}
	for i := range 16 {
		next := "r" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		rules[i].Body = "<" + next + "> <" + next + ">"
		rules = append(rules, Rule{next, "stop", "x:1"})
	}
	return rules
}

func TestCheckAcceptsWhatTheLibraryAccepts(t *testing.T) {
	for _, body := range []string{
		"stop", "[please] stop [now]", "(a | b) c", "stop | go (left | right)", "what's the time", "<other> and <other>",
		"<two_words>\n\t| <t-3>", "[[please]]",
	} {
		g := Grammar{Top: []string{"top"}, Rules: []Rule{
			{"top", body, "a:1"}, {"other", "yes | no", "a:2"}, {"two_words", "good night", "a:3"}, {"t-3", "good day", "a:4"},
		}}
		if err := Check(g, Model); err != nil {
			t.Errorf("%q: %v", body, err)
			continue
		}
		p, err := newPair(Model, g, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%q passes, but the library says: %v", body, err)
			continue
		}
		p.close()
	}
}

func TestCheckWithoutAModel(t *testing.T) {
	err := Check(homeGrammar, t.TempDir())
	if !errors.Is(err, voice.ErrUnavailable) || !strings.Contains(err.Error(), "apt install pocketsphinx-en-us") {
		t.Errorf("%v names neither cause nor cure", err)
	}
}

func TestLookUp(t *testing.T) {
	found, err := readDictionary(Model, map[string]bool{"a": true, "stop": true, "frobnicate": true})
	must.Succeed(t, err)
	got := sorted(found)
	want := []pronunciation{{"a", "AH"}, {"a(2)", "EY"}, {"stop", "S T AA P"}}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
}

// FuzzParse checks that every body that the parser accepts consists of words,
// rules and brackets, and that the library can compile it.
func FuzzParse(f *testing.F) {
	for _, r := range homeGrammar.Rules {
		f.Add(r.Body)
	}
	d, err := newDecoder(Model+"/en-us", commandArgs, []pronunciation{{"stop", "S T AA P"}, {"go", "G OW"}}, "fuzz",
		"#JSGF V1.0;\ngrammar g;\npublic <g> = stop;\n")
	if err != nil {
		f.Skip(err)
	}
	f.Cleanup(d.close)
	f.Fuzz(func(t *testing.T, body string) {
		e, err := parse(body)
		if err != nil {
			return
		}
		for _, w := range e.words {
			if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz'-.") != "" {
				t.Fatalf("word %q", w)
			}
			if w != "stop" && w != "go" {
				return
			}
		}
		rules := []Rule{{Name: "top", Body: body}}
		for _, name := range unique(e.refs) {
			if name == "top" {
				return
			}
			rules = append(rules, Rule{Name: name, Body: "stop"})
		}
		if err := d.setGrammar("fuzz", Grammar{Rules: rules}.jsgf([]string{"top"})); err != nil {
			t.Fatalf("%q passes, but the library says: %v", body, err)
		}
	})
}

// TestOptionalRulesAreLeftOut checks that faulty optional rules are removed, with the optional
// rules that use them, and that the other rules are used.
func TestOptionalRulesAreLeftOut(t *testing.T) {
	g := Grammar{Top: []string{"top", "tide", "list", "two", "many"}, Optional: []string{"tide", "list", "two", "of", "many"}, Rules: []Rule{
		{"top", "good night", "en.yaml:1"},
		{"tide", "when is hochwasserstand", "the skill tide"},
		{"list", "where is <of>", "the skill list"},
		{"of", "qqxz", "own.yaml:3"},
		{"two", "what is the tide", "the skill tide"},
		{"many", strings.Repeat("<big> ", 100), "the skill many"},
		{"big", strings.Repeat("stop ", 150), "en.yaml:4"},
	}}
	kept, _, why, err := removeFaulty(g, Model)
	must.Succeed(t, err)
	if got := strings.Join(kept.Top, " "); got != "top two" {
		t.Errorf("kept are %s", got)
	}
	said := errors.Join(why...).Error()
	for _, want := range []string{"hochwasserstand", "qqxz", "<of> is not defined", "more than 10000 words"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said: %s", want, said)
		}
	}
	p, err := newPair(Model, g, slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	p.close()
	if err := Check(g, Model); err == nil || !strings.Contains(err.Error(), "hochwasserstand") {
		t.Errorf("the check says %v", err)
	}
	g.Optional = nil
	if _, err := newPair(Model, g, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a rule that is not optional is left out")
	}
}
