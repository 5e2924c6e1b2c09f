package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anything passes the check of an engine.
func anything(*Config, any) error { return nil }

func editing(t testing.TB, text string, environ ...string) *Editor {
	t.Helper()
	path := t.TempDir() + "/perch.yaml"
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return &Editor{Source: Source{File: path, Environ: environ, Check: anything}, Now: time.Now}
}

func sample(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../../../packaging/perch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEdit: what is set changes its own line, and comments, order and form stay.
func TestEdit(t *testing.T) {
	for _, c := range []struct {
		text, key string
		value     any
		want      string
	}{
		{"name: perch # mine\n", "name", "chan", "name: chan # mine\n"},
		{"name: \"perch\"\nlanguage: en\n", "name", "a: b", "name: \"a: b\"\nlanguage: en\n"},
		{"robots:\n  # how long\n  idle: 60s   # a minute\n  framing: 1\n", "robots.idle", "5m",
			"robots:\n  # how long\n  idle: 5m   # a minute\n  framing: 1\n"},
		{"robots:\n  idle: 60s # x\n  # after\n\nname: perch\n", "robots.framing", int64(2),
			"robots:\n  idle: 60s # x\n  framing: 2\n  # after\n\nname: perch\n"},
		{"robots: {idle: 60s}  # here\n", "robots.framing", int64(2), "robots: {idle: 60s, framing: 2}  # here\n"},
		{"robots:\nname: perch\n", "robots.mqtt.tls", ":8883", "robots:\n  mqtt:\n    tls: \":8883\"\nname: perch\n"},
		{"robots: {}\n", "robots.mqtt.tls", ":8883", "robots: {mqtt: {tls: \":8883\"}}\n"},
		{"", "speech.silence", "700ms", "speech:\n  silence: 700ms\n"},
		{"# only this\n", "name", "x", "# only this\n\nname: x\n"},
		{"name: a", "language", "de", "name: a\nlanguage: de"},
		{"name: a\r\nrobots:\r\n  idle: 60s # c\r\n", "robots.framing", int64(2), "name: a\r\nrobots:\r\n  idle: 60s # c\r\n  framing: 2\r\n"},
		{"listen: [\":8003\", # one\n  \":9\"]\nname: x\n", "listen", []any{":1"}, "listen: [\":1\"]\nname: x\n"},
		{"listen:\n# first\n- :8003\n# second\n- :9 # nine\n# end\n", "listen", []any{":8003", ":10"},
			"listen:\n# first\n- :8003\n# second\n- \":10\" # nine\n# end\n"},
		{"listen:\n# first\n- :8003\n# second\n- :9\n# end\n", "listen", []any{":8003"}, "listen:\n# first\n- :8003\n# second\n# end\n"},
		{"listen:\n- :8003\n# end\n", "listen.1", ":9", "listen:\n- :8003\n- \":9\"\n# end\n"},
		{"listen: [':8003'] # x\n", "listen.1", ":9", "listen: [':8003', \":9\"] # x\n"},
		{"brains:\n  # reflex\n  - {kind: reflex, sentences: \"\"}\n  # others:\n  #   - {kind: openai}\nname: x\n", "brains",
			[]any{map[string]any{"kind": "assist", "url": "http://h:1"}, map[string]any{"kind": "reflex"}},
			"brains:\n  # reflex\n  - {kind: assist, url: \"http://h:1\"}\n  - {kind: reflex}\n  # others:\n  #   - {kind: openai}\nname: x\n"},
		{"brains:\n  - kind: openai # k\n    url: http://h:1\n    # the model\n    model: m\n  - kind: reflex\n", "brains",
			[]any{map[string]any{"kind": "openai", "url": "http://h:2", "model": "m"}, map[string]any{"kind": "reflex"}},
			"brains:\n  - kind: openai # k\n    url: \"http://h:2\"\n    # the model\n    model: m\n  - kind: reflex\n"},
		{"brains:\n  - kind: openai\n    url: http://h:1\n    model: m # the model\n  - kind: reflex\n", "brains.0.url", nil,
			"brains:\n  - kind: openai\n    model: m # the model\n  - kind: reflex\n"},
		{"robots:\n  idle: 60s\n# c\nname: a\n", "robots.idle", nil, "# c\nname: a\n"},
		{"robots: {idle: 60s, framing: 2, greeting: true}\n", "robots.framing", nil, "robots: {idle: 60s, greeting: true}\n"},
		{"robots: {idle: 60s, framing: 2}\n", "robots.framing", nil, "robots: {idle: 60s}\n"},
		{"name: a\n", "robots.framing", nil, "name: a\n"},
		{"persona:\n  name: >-\n    Chan\n    the first # no comment\n  # c\n  file: \"\"\n", "persona.name", "Bo",
			"persona:\n  name: Bo\n  # c\n  file: \"\"\n"},
		{"name: ü # ü\n", "name", "ä", "name: ä # ü\n"},
		{"log: {level: info}\n", "log.level", "two\nlines", "log: {level: \"two\\nlines\"}\n"},
		{"name: a\n", "timezone", "true", "name: a\ntimezone: \"true\"\n"},
		{"name: a\n", "brains", []any{map[string]any{"kind": "reflex"}}, "name: a\nbrains:\n  - {kind: reflex}\n"},
	} {
		got, err := edit(c.text, strings.Split(c.key, "."), c.value)
		if err != nil || got != c.want {
			t.Errorf("%q\nwith %s: %v is (%v)\n%s\nwant\n%s", c.text, c.key, c.value, err, got, c.want)
		}
	}
}

// TestWhatCannotBeEdited: an alias, several documents and a value that is no
// section are left as they are.
func TestWhatCannotBeEdited(t *testing.T) {
	for text, key := range map[string]string{
		"a: &x {idle: 60s}\nrobots: *x\n": "robots.idle",
		"a: &x 60s\nrobots: {idle: *x}\n": "a",
		"robots: all\n":                   "robots.idle",
		"listen: [a]\n":                   "listen.7",
		"- a\n":                           "name",
	} {
		if got, err := edit(text, strings.Split(key, "."), "de"); err == nil {
			t.Errorf("%q\nwith %s is\n%s", text, key, got)
		}
	}
}

// TestSettingWhatIsThereChangesNothing, of the sample, in which every key is, and of
// files with a few of its lines.
func TestSettingWhatIsThereChangesNothing(t *testing.T) {
	all := sample(t)
	whole := editing(t, all)
	shown, err := whole.Show()
	if err != nil || len(shown.Keys) < 80 {
		t.Fatalf("%d keys, %v", len(shown.Keys), err)
	}
	sections := strings.Split(strings.ReplaceAll(all, "\n\n  ", "\n \n  "), "\n\n")
	rapid.Check(t, func(r *rapid.T) {
		some := rapid.SliceOfNDistinct(rapid.IntRange(1, len(sections)-1), 0, len(sections)-1, rapid.ID).Draw(r, "sections")
		text := sections[0] + "\n"
		for _, i := range some {
			text += "\n" + sections[i] + "\n"
		}
		if _, err := meaning(text); err != nil {
			r.Skip("two of one section")
		}
		if err := os.WriteFile(whole.File, []byte(text), 0o640); err != nil {
			r.Fatal(err)
		}
		shown, err := whole.Show()
		if err != nil {
			r.Fatal(err)
		}
		one := rapid.SampledFrom(shown.Keys).Draw(r, "key")
		checked, err := whole.Check(Change{Set: map[string]any{one.Key: one.Value}})
		if err != nil || len(checked.Faults) > 0 && one.Type != "secret" || checked.Text != shown.Text {
			r.Fatalf("%+v: %v, %v\n%s", one, err, checked.Faults, checked.Text)
		}
	})
}

// TestOneKeyIsOneLine: in the sample, another value of a key that is in a line of
// its own changes that line alone.
func TestOneKeyIsOneLine(t *testing.T) {
	all := sample(t)
	e := editing(t, all)
	shown, err := e.Show()
	if err != nil {
		t.Fatal(err)
	}
	other := map[string]any{"text": "other", "choice": "other", "number": int64(3), "duration": "7s", "secret": "another-key", "bool": nil}
	tried := 0
	for _, one := range shown.Keys {
		value, ok := other[one.Type]
		if one.Type == "bool" {
			value = one.Value != true
		}
		if !ok || one.Line == 0 {
			continue
		}
		tried++
		got, err := edit(all, strings.Split(one.Key, "."), value)
		if err != nil {
			t.Errorf("%s: %v", one.Key, err)
			continue
		}
		before, after := strings.Split(all, "\n"), strings.Split(got, "\n")
		if len(before) != len(after) {
			t.Errorf("%s: %d lines are %d", one.Key, len(before), len(after))
			continue
		}
		for i := range before {
			if before[i] != after[i] && i != one.Line-1 {
				t.Errorf("%s, which is in line %d, changes line %d to %q", one.Key, one.Line, i+1, after[i])
			}
		}
	}
	if tried < 70 {
		t.Errorf("only %d keys were tried", tried)
	}
}

// TestEnginesByAForm: entries of lists are added, changed and removed in one change,
// also of lists that are the defaults so far.
func TestEnginesByAForm(t *testing.T) {
	for _, c := range []struct {
		text string
		set  map[string]any
		want string
	}{
		{"brains:\n- {kind: none} # a\n- {kind: reflex} # b\n- {kind: acp, command: [x]}\n",
			map[string]any{"brains.0": nil, "brains.1": nil, "brains.2.idle": "5m", "brains.3": map[string]any{"kind": "reflex"}},
			"brains:\n- {kind: acp, command: [x], idle: 5m}\n- {kind: reflex}\n"},
		{"name: a\n", map[string]any{"brains.0.sentences": "x.yaml"}, "name: a\nbrains:\n  - {kind: reflex, sentences: x.yaml}\n"},
		{"name: a\n", map[string]any{"brains.1": map[string]any{"kind": "none"}}, "name: a\nbrains:\n  - {kind: reflex}\n  - {kind: none}\n"},
		{"speech:\n  synthesizers:\n    - {kind: espeak, voice: de, speed: 0} # ours\n",
			map[string]any{"speech.synthesizers.0.kind": "openai", "speech.synthesizers.0.key": "geheim", "speech.synthesizers.0.rate": 8000.0},
			"speech:\n  synthesizers:\n    - {kind: openai, key: ••••••, rate: 8000} # ours\n"},
		{"listen: [\":8003\"]\nrobots: {idle: 60s}\n", map[string]any{"listen.0": nil, "listen.1": ":9", "robots.idle": nil}, "listen: [\":9\"]\n"},
		{"robots: {keep_turns: 5}\n", map[string]any{"robots.keep_turns": "1000000000", "robots.greeting": "false", "persona.name": 5.0},
			"robots: {keep_turns: 1000000000, greeting: false}\npersona:\n  name: \"5\"\n"},
	} {
		checked, err := editing(t, c.text).Check(Change{Set: c.set})
		if err != nil || checked.Text != c.want {
			t.Errorf("%s\nwith %v is (%v, %v)\n%s\nwant\n%s", c.text, c.set, err, checked.Faults, checked.Text, c.want)
		}
	}
	// A text that is not shown is not replaced by one that was written without it.
	name := "name: b\n"
	e := editing(t, "name: a\nskins:\n  key: >-\n    geheim-geheim\n")
	if _, err := e.Check(Change{Text: &name}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("it is taken: %v", err)
	}
	if err := changes(t, e, "b"); err != nil || text(t, e.File) != "name: b\nskins:\n  key: >-\n    geheim-geheim\n" {
		t.Errorf("a key is not set: %v, %s", err, text(t, e.File))
	}
}

// FuzzEdit: whatever the text, a change is refused or means what was asked, and what is
// hidden is not shown.
func FuzzEdit(f *testing.F) {
	f.Add("name: a\nrobots: {idle: 60s}\n", "robots.idle", "5m")
	f.Add("brains:\n- kind: openai\n  key: geheim # key: geheim\n", "brains.0.key", "x")
	f.Add("a: &a [x,x]\nb: &b [*a,*a]\nc: *b\n", "b.0", "y")
	f.Add("key: |\n  geheim\n", "key", "y")
	f.Add("key: \"ge\\x68eim\"\nenv: {A: geheim}\n", "env.A", "")
	f.Fuzz(func(t *testing.T, text, key, value string) {
		if len(text) > 4096 || len(key) > 200 {
			t.Skip("longer than a person writes")
		}
		if got, err := edit(text, strings.Split(key, "."), value); err == nil {
			if _, err := meaning(got); err != nil {
				t.Fatalf("%q became %q: %v", text, got, err)
			}
		}
		shown, err := masked(text)
		if err != nil {
			return
		}
		back, lost := restored(shown, text)
		if !strings.Contains(text, "•") && len(lost) == 0 {
			was, err := meaning(text)
			now, err2 := meaning(back)
			if (err == nil) != (err2 == nil) || fmt.Sprint(was) != fmt.Sprint(now) {
				t.Fatalf("%q\nshown\n%q\nis back\n%q", text, shown, back)
			}
		}
	})
}

// TestHostileTexts are refused, or found to be without faults, soon: aliases of aliases,
// depths and numbers that a decoder would take minutes for.
func TestHostileTexts(t *testing.T) {
	var aliases, keys strings.Builder
	aliases.WriteString("a0: &a0 [x]\n")
	for i := range 30 {
		fmt.Fprintf(&aliases, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i)
	}
	for i := range 90_000 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	e := editing(t, "name: a\n")
	began := computed(t) // in proportion to which the rest is, under any load and the race detector
	if _, err := parse(keys.String()); err == nil {
		t.Error("keys are taken")
	}
	maskedLines(keys.String())
	most := 10 * (computed(t) - began)
	for what, text := range map[string]string{
		"aliases": aliases.String() + "name: *a30\nbrains: [{extra: {x: *a30}}]\n", "keys": keys.String(),
		"brackets": strings.Repeat("[", 1<<19), "dashes": strings.Repeat("- ", 1<<19), "large": "# " + strings.Repeat("x", mostConfig),
		"quotes": "\"" + strings.Repeat("\\n", 1<<19), "a loop": "a: &a [*a]\nkey: *a\n",
	} {
		began := computed(t)
		checked, err := e.Check(Change{Text: &text})
		if err == nil && len(checked.Faults) == 0 {
			t.Errorf("%s are taken", what)
		}
		if err := os.WriteFile(e.File, []byte(text[:min(len(text), mostConfig)]), 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Show(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := e.Check(Change{Set: map[string]any{"name": "x", "brains.0.kind": "none"}}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		took := computed(t) - began
		if took > most {
			t.Errorf("%s took %s of a core, more than %s", what, took, most)
		}
	}
}

// computed is how long this process has had a core, whatever else the machine does.
func computed(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
