package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"perch/must"
)

// overlaid returns an Overlay for a configuration file with a text. The file of the overlay does not exist yet.
func overlaid(t testing.TB, text string, environ ...string) *Overlay {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "perch.yaml")
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o640))
	source := Source{File: path, Overlay: filepath.Join(dir, OverlayFile), Environ: environ}
	return &Overlay{Source: source}
}

// TestOptionsKeepWhatTheOverlayReplaces checks that, in the Home Assistant app, a key of the overlay still shows that the
// owner's file sets it, too.
func TestOptionsKeepWhatTheOverlayReplaces(t *testing.T) {
	o := overlaid(t, "language: de\n")
	changes(t, o, map[string]any{"language": "en"})
	o.Source.Options = filepath.Join(t.TempDir(), "options.json")
	must.Succeed(t, os.WriteFile(o.Source.Options, []byte(`{"name":"cottage"}`), 0o600))
	for _, k := range must.Value(o.Read())(t).Keys {
		if k.Key == "language" && !k.InFile {
			t.Error("the file is said not to set the language")
		}
	}
}

// text returns the content of a file, or "" if the file does not exist.
func text(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// settingsOf returns the content of the overlay's file without overlayHead.
func settingsOf(t testing.TB, o *Overlay) string {
	t.Helper()
	return strings.TrimPrefix(text(t, o.Source.Overlay), overlayHead)
}

// changes changes keys, and ends the test if that fails.
func changes(t testing.TB, o *Overlay, values map[string]any) {
	t.Helper()
	if _, faults, err := o.Change(values); err != nil || len(faults) > 0 {
		t.Fatalf("%v: %v, %v", values, faults, err)
	}
}

// TestAChangeIsWrittenIntoTheOverlay: a change is written into the overlay in the schema of the owner's file,
// which does not change.
func TestAChangeIsWrittenIntoTheOverlay(t *testing.T) {
	for _, c := range []struct {
		file   string
		values []map[string]any // the changes, in order
		want   string
	}{
		{"name: house\n", []map[string]any{{"name": "cottage"}}, "name: cottage\n"},
		{"name: house\n", []map[string]any{{"name": "cottage", "speech.silence": "700ms"}, {"name": nil}}, "speech:\n    silence: 700ms\n"},
		{"name: house\n", []map[string]any{{"name": "cottage"}, {"name": nil}}, ""},
		{"name: house\n", []map[string]any{{"name": nil}}, ""},
		{"", []map[string]any{{"robots.keep_turns": 5.0, "robots.greeting": false, "persona.name": 5.0, "timezone": "UTC"}},
			"persona:\n    name: \"5\"\nrobots:\n    greeting: false\n    keep_turns: 5\ntimezone: UTC\n"},
		{"", []map[string]any{{"robots.keep_turns": "5", "robots.greeting": "false", "language": []any{"en", "de"}}},
			"language:\n    - en\n    - de\nrobots:\n    greeting: false\n    keep_turns: 5\n"},
		{"", []map[string]any{{"robots": map[string]any{"idle": "5m", "mqtt": map[string]any{"listen": ":1"}}}, {"robots": nil}}, ""},
		{"listen: [\":1\"]\n", []map[string]any{{"listen": []any{":2", ":3"}}, {"listen.2": ":4"}, {"listen.0": nil}},
			"listen:\n    - :3\n    - :4\n"},
		{"listen: [\":1\"]\n", []map[string]any{{"listen": "[\":2\"]"}}, "listen:\n    - :2\n"},
		// After a change of an entry of a list in the owner's file, the overlay contains the whole list.
		{"brains:\n- {kind: openai, url: \"http://h/v1\", model: m, key: geheim-1} # ours\n- {kind: reflex}\n",
			[]map[string]any{{"brains.0.model": "n"}},
			"brains:\n    - key: geheim-1\n      kind: openai\n      model: \"n\"\n      url: http://h/v1\n    - kind: reflex\n"},
		{"", []map[string]any{{"brains.1": map[string]any{"kind": "none", "url": nil}}}, "brains:\n    - kind: reflex\n    - kind: none\n"},
		{"", []map[string]any{{"brains.1": "kind: none\nurl:\n"}, {"brains.0": nil}}, "brains:\n    - kind: none\n"},
		{"", []map[string]any{{"speech.synthesizers.0.kind": "openai", "speech.synthesizers.0.key": "geheim", "speech.synthesizers.0.rate": 8000.0,
			"speech.synthesizers.0.url": "http://h/v1"}},
			"speech:\n    synthesizers:\n        - key: geheim\n          kind: openai\n          rate: 8000\n          url: http://h/v1\n"},
		{"brains:\n- {kind: none}\n- {kind: reflex}\n- {kind: acp, command: [x]}\n",
			[]map[string]any{{"brains.0": nil, "brains.1": nil, "brains.2.idle": "5m", "brains.3": map[string]any{"kind": "reflex"}}},
			"brains:\n    - command:\n        - x\n      idle: 5m\n      kind: acp\n    - kind: reflex\n"},
		{"skins: {vocabularies: {a: {neutral: y}}}\n", []map[string]any{{"skins.vocabularies": map[string]any{}}}, "skins:\n    vocabularies: {}\n"},
	} {
		o := overlaid(t, c.file)
		for _, values := range c.values {
			changes(t, o, values)
		}
		if got := settingsOf(t, o); got != c.want {
			t.Errorf("%s\nwith %v is\n%s\nwant\n%s", c.file, c.values, got, c.want)
		}
		if got := text(t, o.File); got != c.file {
			t.Errorf("the owner's file is %q, was %q", got, c.file)
		}
		if info, err := os.Stat(o.Source.Overlay); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the overlay: %v, %v", info, err)
		}
	}
}

// TestTheOverlayComesBeforeTheFile: each key of the overlay overrides the key of the owner's file. Lists and
// maps are replaced as a whole.
func TestTheOverlayComesBeforeTheFile(t *testing.T) {
	o := overlaid(t, "name: house\nrobots: {idle: 5m, framing: 2}\nallowed_hosts: [a.example, b.example]\nskins: {vocabularies: {a: {neutral: y}}}\n"+
		"language: [en, de]\n", "PERCH_ROBOTS_FRAMING=3")
	changes(t, o, map[string]any{"robots.idle": "7m", "allowed_hosts": []any{"c.example"}, "speech.silence": "700ms",
		"skins.vocabularies": map[string]any{"b": map[string]any{"neutral": "y"}}, "language": "fr"})
	c := must.Value(o.Load())(t)
	if c.Name != "house" || time.Duration(c.Robots.Idle) != 7*time.Minute || c.Robots.Framing != 3 || !reflect.DeepEqual(c.AllowedHosts, []string{"c.example"}) ||
		len(c.Skins.Vocabularies) != 1 || c.Language != "fr" {
		t.Errorf("%+v", c)
	}
	shown := must.Value(o.Read())(t)
	from := map[string]string{}
	for _, k := range shown.Keys {
		from[k.Key] = k.From
	}
	for key, want := range map[string]string{"name": "file", "robots.idle": "settings", "robots.framing": "environment", "allowed_hosts": "settings",
		"speech.silence": "settings", "robots.keep_turns": "default", "brains.0.kind": "default", "language": "settings"} {
		if from[key] != want {
			t.Errorf("%s is from %s, want %s", key, from[key], want)
		}
	}
}

// TestAWrongValueIsRefused: the fault for a wrong value names the key and the cause, and nothing is changed.
func TestAWrongValueIsRefused(t *testing.T) {
	o := overlaid(t, "name: house\n", "PERCH_MQTT_BROKER=none")
	o.Fixed = map[string]string{"listen": "--listen"}
	changes(t, o, map[string]any{"timezone": "UTC"})
	before := text(t, o.Source.Overlay)
	for _, c := range []struct {
		key   string
		value any
		says  string
	}{
		{"speech.silence", "10s", "an utterance ends after 200ms to 3s of silence, not 10s"},
		{"name", "My House", "is not a network name"},
		{"nmae", "x", "there is no such key"},
		{"data", "/x", "there is no such key"},
		{"name.x", "x", "there is no such key"},
		{"robots", "x", "this key contains other keys"},
		{"robots", map[string]any{"idel": 1}, "idel: there is no such key"},
		{"robots.keep_turns", "many", "`many` is not of the right type"},
		{"robots.keep_turns", "[", "it is not valid YAML"},
		{"robots.keep_turns", map[string]any{}, "the value is not of the right type"},
		{"mqtt.broker", "embedded", "PERCH_MQTT_BROKER sets this key and overrides the settings"},
		{"listen", []any{":1"}, "--listen sets this key"},
		{"listen.0", nil, "--listen sets this key"},
		{"brains.0.kind", "gpt", "it must be one of acp, anthropic"},
		{"brains.7", map[string]any{"kind": "none"}, "there is no entry 7 in the list of 1"},
		{"brains.0", nil, "at least one is needed"},
		{"brains.0.modle", "x", "there is no such key"},
		{"skins.key", map[string]any{"set": true}, "the value is not of the right type"},
		{"skins.key", "short", "it has 5 characters"},
		{"", "x", "there is no such key"},
	} {
		_, faults, err := o.Change(map[string]any{"robots.idle": "5m", c.key: c.value})
		if err != nil || len(faults) == 0 || !strings.Contains(faults[0].Key+": "+faults[0].Message, c.says) || !strings.HasPrefix(faults[0].Key, strings.Split(c.key, ".")[0]) {
			t.Errorf("%s: %v is refused with %v, %v; want %s", c.key, c.value, faults, err, c.says)
		}
		if now := text(t, o.Source.Overlay); now != before {
			t.Fatalf("%s: %v: the overlay is %s", c.key, c.value, now)
		}
	}
	if _, faults, _ := o.Change(map[string]any{"nmae": nil}); len(faults) != 1 {
		t.Errorf("a key that is not there is given back: %v", faults)
	}
}

// TestAFaultInTheOverlay: a fault in the overlay names file, line and key, and the command that removes the key
// from the overlay. If there are several faults, the keys can be removed one after the other.
func TestAFaultInTheOverlay(t *testing.T) {
	for overlay, says := range map[string]string{
		"speech:\n  silence: 10s\n":            ":2: speech.silence: an utterance ends after 200ms to 3s of silence, not 10s; perch unset speech.silence removes",
		"nmae: x\n":                            ":1: nmae: there is no such key; perch unset nmae removes this setting, so that the configuration file decides again",
		"robots:\n  idel: 1\n":                 ":2: robots.idel: there is no such key; perch unset robots.idel removes",
		"robots: {idle: soon}\n":               ":1: robots.idle: \"soon\" is not a duration such as 60s, 5m or 24h; perch unset robots.idle removes",
		"brains:\n- kind: none\n- kind: gpt\n": ":3: brains.1.kind: it must be one of acp, anthropic, assist, none, openai, realtime, reflex, not \"gpt\"; perch unset brains removes",
		"skins: {key_file: /x}\n":              ":1: skins: key and key_file are two places for one key; perch unset skins removes",
	} {
		o := overlaid(t, "name: house\nskins: {key: a-long-key}\n")
		must.Succeed(t, os.WriteFile(o.Source.Overlay, []byte(overlay), 0o600))
		_, err := o.Load()
		if err == nil || !strings.HasPrefix(err.Error(), o.Source.Overlay+says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\nsays %v, want %s", overlay, err, says)
			continue
		}
		_, command, _ := strings.Cut(err.Error(), "perch unset ")
		key, _, _ := strings.Cut(command, " ")
		changes(t, o, map[string]any{key: nil})
		if _, err := o.Load(); err != nil {
			t.Errorf("%s\nafter perch unset %s: %v", overlay, key, err)
		}
	}
	o := overlaid(t, "name: house\n")
	for _, overlay := range []string{"name: [", "- a\n"} {
		must.Succeed(t, os.WriteFile(o.Source.Overlay, []byte(overlay), 0o600))
		if _, err := o.Load(); err == nil || !strings.HasPrefix(err.Error(), o.Source.Overlay+":1: ") || !strings.Contains(err.Error(), "remove it to run with the configuration file alone") {
			t.Errorf("%q says %v", overlay, err)
		}
		if _, faults, err := o.Change(map[string]any{"name": "x"}); err != nil || len(faults) != 1 || !strings.Contains(faults[0].Message, o.Source.Overlay) {
			t.Errorf("%q is changed: %v, %v", overlay, faults, err)
		}
	}
	// Two faults are corrected one after the other.
	must.Succeed(t, os.WriteFile(o.Source.Overlay, []byte("nmae: x\nspeech: {silence: 10s}\n"), 0o600))
	if _, faults, _ := o.Change(map[string]any{"name": "x"}); len(faults) != 2 {
		t.Errorf("a configuration with faults is changed: %v", faults)
	}
	changes(t, o, map[string]any{"nmae": nil})
	changes(t, o, map[string]any{"speech.silence": nil})
	if _, err := o.Load(); err != nil {
		t.Error(err)
	}
}

// applier is an Applier that applies the key name without a restart; all other keys need a restart.
type applier struct {
	started Config
	given   []*Config
	err     error
}

func (a *applier) Apply(c *Config) (restart []string, err error) {
	if a.err != nil {
		return nil, a.err
	}
	a.given = append(a.given, c)
	for _, key := range Changed(&a.started, c) {
		if key != "name" {
			restart = append(restart, key)
		}
	}
	return restart, nil
}

// TestAChangeIsApplied: Change applies a change before it returns, and returns the keys that need a restart. A
// change that cannot be applied or written changes nothing.
func TestAChangeIsApplied(t *testing.T) {
	o := overlaid(t, "name: house\n")
	c, err := o.Load()
	must.Succeed(t, err)
	a := &applier{started: c}
	o.Applier = a
	must.Succeed(t, o.Start(&c))
	expect := func(values map[string]any, want ...string) {
		t.Helper()
		got, faults, err := o.Change(values)
		if err != nil || len(faults) > 0 || got.Restart != (len(want) > 0) || !reflect.DeepEqual(got.Keys, append([]string{}, want...)) {
			t.Errorf("%v: %+v, %v, %v; want %q", values, got, faults, err, want)
		}
		if shown, err := o.Read(); err != nil || !reflect.DeepEqual(shown.Restart, append([]string{}, want...)) {
			t.Errorf("shown is %q, want %q (%v)", shown.Restart, want, err)
		}
	}
	expect(map[string]any{"name": "cottage"})
	if last := a.given[len(a.given)-1]; last.Name != "cottage" {
		t.Errorf("applied is %q", last.Name)
	}
	expect(map[string]any{"listen": []any{":1"}}, "listen")
	expect(map[string]any{"name": "hut"}, "listen")
	expect(map[string]any{"listen": nil})
	before := text(t, o.Source.Overlay)
	a.err = errors.New("no such voice")
	if _, faults, err := o.Change(map[string]any{"name": "tent"}); err != nil || len(faults) != 1 || faults[0].Key != "name" || faults[0].Message != "no such voice" {
		t.Errorf("%v, %v", faults, err)
	}
	a.err = nil
	o.Source.Overlay = filepath.Join(filepath.Dir(o.File), "nowhere", OverlayFile)
	if _, _, err := o.Change(map[string]any{"name": "tent"}); err == nil {
		t.Error("nothing was written, and it is answered")
	}
	if last := a.given[len(a.given)-1]; last.Name != "hut" {
		t.Errorf("applied is %q, which was not written", last.Name)
	}
	o.Source.Overlay = filepath.Join(filepath.Dir(o.File), OverlayFile)
	if now := text(t, o.Source.Overlay); now != before {
		t.Errorf("the overlay is %s", now)
	}
	// A change in the owner's file needs a restart.
	must.Succeed(t, os.WriteFile(o.File, []byte("name: house\nrobots: {idle: 5m}\n"), 0o640))
	if shown, err := o.Read(); err != nil || !reflect.DeepEqual(shown.Restart, []string{"robots.idle"}) {
		t.Errorf("shown is %q, %v", shown.Restart, err)
	}
}

// TestChangesAtOnce: no change is lost if two goroutines change keys at the same time.
func TestChangesAtOnce(t *testing.T) {
	o := overlaid(t, "name: house\n")
	var owners sync.WaitGroup
	for _, key := range []string{"robots.keep_turns", "memory.most"} {
		owners.Go(func() {
			for n := range 20 {
				if _, faults, err := o.Change(map[string]any{key: float64(100 + n)}); err != nil || len(faults) > 0 {
					t.Error(faults, err)
				}
			}
		})
	}
	owners.Wait()
	if c, err := o.Load(); err != nil || c.Robots.KeepTurns != 119 || c.Memory.Most != 119 {
		t.Errorf("%d, %d, %v", c.Robots.KeepTurns, c.Memory.Most, err)
	}
}

// TestSettingWhatIsShownChangesNothing: setting every key of the sample to the value that Read shows does not
// change the configuration.
func TestSettingWhatIsShownChangesNothing(t *testing.T) {
	o := overlaid(t, Sample())
	shown, err := o.Read()
	if err != nil || len(shown.Keys) < 80 {
		t.Fatalf("%d keys, %v", len(shown.Keys), err)
	}
	before := must.Value(o.Load())(t)
	values := map[string]any{}
	for _, one := range shown.Keys {
		if one.Type != "secret" { // the value of a secret is not shown
			values[one.Key] = one.Value
		}
	}
	changes(t, o, values)
	if after, err := o.Load(); err != nil || len(Changed(&before, &after)) > 0 {
		t.Errorf("%q, %v", Changed(&before, &after), err)
	}
	if text(t, o.File) != Sample() {
		t.Error("the owner's file was changed")
	}
}

// TestCheckSavesNothing: Check and CheckChange report faults and save nothing. A masked secret is no fault.
func TestCheckSavesNothing(t *testing.T) {
	const own = "name: house\nskins: {key: a-long-key}\nspeech: {silence: 700ms}\n"
	o := overlaid(t, own)
	changes(t, o, map[string]any{"timezone": "UTC"})
	shown, err := o.Read()
	if err != nil || !strings.Contains(shown.Text, "skins: {key: ••••••}") {
		t.Fatal(shown.Text, err)
	}
	if checked, err := o.Check(shown.Text); err != nil || len(checked.Faults) > 0 {
		t.Errorf("%v, %v", checked.Faults, err)
	}
	checked, err := o.Check(strings.NewReplacer("name:", "nmae:", "700ms", "10s").Replace(shown.Text))
	if err != nil || fmt.Sprint(checked.Faults) != fmt.Sprintf("[%[1]s:1: nmae: there is no such key "+
		"%[1]s:3: speech.silence: an utterance ends after 200ms to 3s of silence, not 10s]", o.File) {
		t.Errorf("%v, %v", checked.Faults, err)
	}
	if checked, err := o.CheckChange(map[string]any{"speech.silence": "10s"}); err != nil || len(checked.Faults) != 1 {
		t.Errorf("%v, %v", checked.Faults, err)
	}
	if checked, err := o.CheckChange(map[string]any{"name": "cottage"}); err != nil || len(checked.Faults) > 0 {
		t.Errorf("%v, %v", checked.Faults, err)
	}
	if text(t, o.File) != own || strings.Contains(settingsOf(t, o), "cottage") {
		t.Error("it was saved")
	}
}

// TestHostileTexts: texts that a YAML decoder would need minutes for, such as aliases of aliases, deep nesting and
// many keys, are refused soon.
func TestHostileTexts(t *testing.T) {
	var aliases, keys strings.Builder
	aliases.WriteString("a0: &a0 [x]\n")
	for i := range 30 {
		fmt.Fprintf(&aliases, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i)
	}
	for i := range 90_000 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	o := overlaid(t, "name: a\n")
	began := computed(t) // the limit for each text is a multiple of the time of this one, so that it holds on any machine
	if _, err := parseYAML(keys.String()); err == nil {
		t.Error("keys are taken")
	}
	most := 10 * (computed(t) - began)
	for what, text := range map[string]string{
		"aliases": aliases.String() + "name: *a30\nbrains: [{extra: {x: *a30}}]\n", "keys": keys.String(),
		"brackets": strings.Repeat("[", 1<<19), "dashes": strings.Repeat("- ", 1<<19), "large": "# " + strings.Repeat("x", maxFileSize),
		"quotes": "\"" + strings.Repeat("\\n", 1<<19), "a loop": "a: &a [*a]\nkey: *a\n",
	} {
		began := computed(t)
		if checked, err := o.Check(text); err == nil && len(checked.Faults) == 0 {
			t.Errorf("%s are taken", what)
		}
		if _, faults, err := o.Change(map[string]any{"brains": text}); err != nil || len(faults) == 0 {
			t.Errorf("%s are set: %v", what, err)
		}
		must.Succeed(t, os.WriteFile(o.File, []byte(text[:min(len(text), maxFileSize)]), 0o640))
		if _, err := o.Read(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		took := computed(t) - began
		if took > most {
			t.Errorf("%s took %s of a core, more than %s", what, took, most)
		}
		must.Succeed(t, os.WriteFile(o.File, []byte("name: a\n"), 0o640))
	}
}

// computed returns the CPU time that this process has used.
func computed(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	must.Succeed(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestStartCorrectsTheOverlaysMode: Start makes an overlay that others can read private again.
func TestStartCorrectsTheOverlaysMode(t *testing.T) {
	o := overlaid(t, "name: a\n")
	if err := o.Start(&Config{}); err != nil {
		t.Fatalf("without one: %v", err)
	}
	must.Succeed(t, os.WriteFile(o.Source.Overlay, []byte("name: b\n"), 0o644))
	must.Succeed(t, o.Start(&Config{}))
	if at, err := os.Stat(o.Source.Overlay); err != nil || at.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", at.Mode(), err)
	}
}
