package skill_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/skill"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
	"perch/must"
)

// bundle writes a bundle into the folder name in dir and returns the path of the folder. files maps
// the paths of files to their contents.
func bundle(t *testing.T, dir, name string, files map[string]string) string {
	t.Helper()
	folder := filepath.Join(dir, name)
	must.Succeed(t, os.MkdirAll(folder, 0o755))
	for file, text := range files {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644))
	}
	return folder
}

// plain returns the files of a bundle that has only a manifest. more is JSON to add to the manifest.
func plain(name, more string) map[string]string {
	const form = `{"spec":"skill/0.1","name":%q,"version":"1.2.0","description":"Does %s."%s}`
	return map[string]string{"manifest.json": fmt.Sprintf(form, name, name, more)}
}

// heard records the events that a library publishes.
type heard struct{ events []event.Event }

func (h *heard) publish(_ device.ID, _ string, e event.Event) { h.events = append(h.events, e) }

func (h *heard) kinds() (all []string) {
	for _, e := range h.events {
		all = append(all, event.Kind(e))
	}
	return all
}

func library(t *testing.T, o skill.Options) *skill.Library {
	t.Helper()
	if o.Publish == nil {
		o.Publish = func(device.ID, string, event.Event) {}
	}
	if o.Language == nil {
		o.Language = func() string { return "" }
	}
	l := must.Value(skill.New(o))(t)
	t.Cleanup(l.Close)
	return l
}

func anyOf(dir string) skill.Options {
	return skill.Options{Folder: dir, Trust: skill.Trust{Mode: skill.Any}}
}

// names returns the names of the skills in bundles, in the order of All.
func names(l *skill.Library) (all []string) {
	for _, s := range l.All() {
		if s.Folder != "" {
			all = append(all, s.Name)
		}
	}
	return all
}

// refused returns the error of the library's refusal. The test fails unless there is exactly one.
func refused(t *testing.T, l *skill.Library) string {
	t.Helper()
	if len(l.Refused()) != 1 {
		t.Fatalf("refused are %v, not one", l.Refused())
	}
	return l.Refused()[0].Err.Error()
}

func TestBundlesAtFaultAreRefusedWithASentence(t *testing.T) {
	tool := func(text string) map[string]string {
		files := plain("tide", `,"mcpServers":{"sea":"http://127.0.0.1:1/mcp"}`)
		files["tools.json"] = `{"tools":[` + text + `]}`
		return files
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no manifest":            {map[string]string{"SKILL.md": "x"}, "manifest.json is missing"},
		"no JSON":                {map[string]string{"manifest.json": "{"}, "not the expected JSON"},
		"another spec":           {map[string]string{"manifest.json": `{"spec":"skill/9","name":"a","description":"b"}`}, "spec is"},
		"a path for a name":      {map[string]string{"manifest.json": `{"name":"../a","description":"b"}`}, "not a name for a skill"},
		"no description":         {map[string]string{"manifest.json": `{"name":"tide"}`}, "description is missing"},
		"a long manifest":        {map[string]string{"manifest.json": strings.Repeat(" ", 10<<20)}, "larger than"},
		"names itself":           {plain("tide", `,"dependencies":{"tide":"*"}`), "the skill tide depends on itself"},
		"names itself in a list": {plain("tide", `,"dependencies":["tide"]`), "the skill tide depends on itself"},
		"fetches":                {plain("tide", `,"dependencies":{"ipfs://bafy/base/":"^1.0.0"}`), "cannot be downloaded"},
		"no version":             {plain("tide", `,"dependencies":{"base":"new"}`), "is not a version"},
		"other dependencies":     {plain("tide", `,"dependencies":3`), "dependencies is a list"},
		"a built-in's name":      {plain("greet", ""), "give it another"},
		"the memory's name":      {plain("remember", ""), "give it another"},
		"a viewer's name":        {plain("present-model", ""), "leaves to a viewer"},
		"no such handler":        {plain("tide", `,"handler":"x"`), "handler names the tool"},
		"changed since":          {plain("tide", `,"integrity":{"SKILL.md":"sha256-00"}`), "integrity"},
		"a number's schema":      {plain("tide", `,"inputSchema":{"type":"number"}`), "schema of arguments"},
		"an unknown type":        {plain("tide", `,"inputSchema":{"type":"object","properties":{"a":{"type":"text"}}}`), "is not a type"},
		"a type that is none":    {plain("tide", `,"inputSchema":{"type":"object","properties":{"a":{"type":3}}}`), "type is a word"},
		"nobody does it":         {tool(`{"name":"a","description":"b"}`), "does not run JavaScript"},
		"two do it":              {tool(`{"name":"a","description":"b","url":"http://x/","mcp":"sea"}`), "both a url"},
		"another server":         {tool(`{"name":"a","description":"b","mcp":"lake"}`), "not in mcpServers"},
		"a file for a url":       {tool(`{"name":"a","description":"b","url":"file:///etc/passwd"}`), "is not an address"},
		"a key in a url":         {tool(`{"name":"a","description":"b","url":"http://me:secret@x/"}`), "without a user"},
		"a bad tool name":        {tool(`{"name":"a b","description":"b","url":"http://x/"}`), "needs a name"},
		"one name twice": {tool(`{"name":"a","description":"b","url":"http://x/"},{"name":"a","description":"b","url":"http://x/"}`),
			"two tools are called a"},
		"Perch's tool": {tool(`{"name":"perform_skill","description":"b","url":"http://x/"}`), "a tool of Perch"},
		"open front":   {map[string]string{"manifest.json": plain("tide", "")["manifest.json"], "SKILL.md": "---\nname: tide\n"}, "not closed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			bundle(t, dir, "it", c.files)
			bundle(t, dir, "other", plain("other", "")) // is loaded all the same
			l := library(t, anyOf(dir))
			if got := refused(t, l); !strings.Contains(got, c.want) {
				t.Errorf("the refusal is %q, without %q", got, c.want)
			}
			if got := names(l); !slices.Equal(got, []string{"other"}) {
				t.Errorf("loaded are %v", got)
			}
		})
	}
}

func TestALinkOutOfABundleIsRefused(t *testing.T) {
	dir := t.TempDir()
	folder := bundle(t, dir, "tide", plain("tide", ""))
	must.Succeed(t, os.Symlink("/etc/passwd", filepath.Join(folder, "SKILL.md")))
	if got := refused(t, library(t, anyOf(dir))); !strings.Contains(got, "is a link") {
		t.Errorf("the refusal is %q", got)
	}
}

func TestSkillsComeAfterThoseTheyNeed(t *testing.T) {
	dir := t.TempDir()
	bundle(t, dir, "1", plain("boat", `,"dependencies":{"skills/tide/":"^1.0.0","greet":"*"}`))
	bundle(t, dir, "2", plain("tide", `,"dependencies":["wind"]`))
	bundle(t, dir, "3", plain("wind", ""))
	bundle(t, dir, "4", plain("anchor", ""))
	l := library(t, anyOf(dir))
	if got := names(l); !slices.Equal(got, []string{"anchor", "wind", "tide", "boat"}) || len(l.Refused()) > 0 {
		t.Errorf("the order is %v; refused %v", got, l.Refused())
	}
}

func TestWhatNeedsWhatIsNotThereIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		of   map[string]string // JSON to add to the manifest; key: name of the skill
		want map[string]string // part of the refusal's error; key: name of the skill
	}{
		"a circle": {map[string]string{"a": `,"dependencies":["b"]`, "b": `,"dependencies":["c"]`, "c": `,"dependencies":["a"]`},
			map[string]string{"a": "in a circle: a, b, c, a", "b": "circle", "c": "circle"}},
		"missing": {map[string]string{"a": `,"dependencies":["b"]`}, map[string]string{"a": "needs the skill b, which is missing"}},
		"too old": {map[string]string{"a": `,"dependencies":{"b":"^2.0.0"}`, "b": ""},
			map[string]string{"a": "needs b ^2.0.0, but the installed version is 1.2.0"}},
		"one of them is refused": {map[string]string{"a": `,"dependencies":["b"]`, "b": `,"dependencies":["c"]`},
			map[string]string{"a": "needs the skill b", "b": "c, which"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, more := range c.of {
				bundle(t, dir, name, plain(name, more))
			}
			l := library(t, anyOf(dir))
			if len(l.Refused()) != len(c.want) {
				t.Errorf("refused are %v", l.Refused())
			}
			for _, r := range l.Refused() {
				if want := c.want[r.Name]; want == "" || !strings.Contains(r.Err.Error(), want) {
					t.Errorf("%s is refused with %q, without %q", r.Name, r.Err, want)
				}
			}
		})
	}
}

func TestTwoToolsOfOneNameAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		files := plain(name, "")
		files["tools.json"] = `{"tools":[{"name":"tide","description":"d","url":"http://127.0.0.1:1/"}]}`
		bundle(t, dir, name, files)
	}
	l := library(t, anyOf(dir))
	if got := refused(t, l); got != "its tool tide has the same name as a tool of a; rename one of them" || !slices.Equal(names(l), []string{"a"}) {
		t.Errorf("the refusal is %q, loaded are %v", got, names(l))
	}
}

func TestVersionsThatWillDo(t *testing.T) {
	for wanted, fits := range map[string]bool{"*": true, "1.2.0": true, "1.2": true, "1.2.1": false, "^1.0.0": true, "^1.3.0": false,
		"^0.9.0": false, "~1.2.0": true, "~1.1.0": false, ">=1.0.0": true, ">=2": false} {
		dir := t.TempDir()
		bundle(t, dir, "a", plain("a", fmt.Sprintf(`,"dependencies":{"b":%q}`, wanted)))
		bundle(t, dir, "b", plain("b", ""))
		l := library(t, anyOf(dir))
		if got := len(names(l)) == 2; got != fits {
			t.Errorf("version 1.2.0 will do for %q is %t, not %t", wanted, got, fits)
		}
		if err := l.Check("b", wanted); (err == nil) != fits || err != nil && !errors.Is(err, skill.ErrVersion) {
			t.Errorf("a manifest asks for %q: %v", wanted, err)
		}
	}
}

func keys(t *testing.T) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	must.Succeed(t, err)
	return public, private
}

func TestTrustFailsClosed(t *testing.T) {
	public, private := keys(t)
	_, other := keys(t)
	signed := func(key ed25519.PrivateKey) func(*testing.T, string) {
		return func(t *testing.T, folder string) {
			s := must.Value(skill.Read(folder))(t)
			must.Value(skill.Sign(s, key))(t)
		}
	}
	after := func(key ed25519.PrivateKey, do func(folder string) error) func(*testing.T, string) {
		return func(t *testing.T, folder string) {
			signed(key)(t, folder)
			must.Succeed(t, do(folder))
		}
	}
	write := func(name, text string) func(string) error {
		return func(folder string) error { return os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644) }
	}
	owned := skill.Trust{Mode: skill.OwnedOnly, Owners: []ed25519.PublicKey{public}}
	for name, c := range map[string]struct {
		trust  skill.Trust
		change func(*testing.T, string)
		want   string // part of the refusal's error; empty if the bundle is loaded
	}{
		"any":                       {trust: skill.Trust{Mode: skill.Any}},
		"no mode":                   {trust: skill.Trust{}, want: "does not exist"},
		"a mode of the future":      {trust: skill.Trust{Mode: "friends"}, change: signed(private), want: "does not exist"},
		"owned, not signed":         {trust: owned, want: "it is not signed"},
		"owned, signed":             {trust: owned, change: signed(private)},
		"owned, by another key":     {trust: owned, change: signed(other), want: "not an owner's"},
		"owned, no owners":          {trust: skill.Trust{Mode: skill.OwnedOnly}, change: signed(private), want: "not an owner's"},
		"owned, a file was changed": {trust: owned, change: after(private, write("SKILL.md", "Obey me.")), want: "changed after it was signed"},
		"owned, a file was added":   {trust: owned, change: after(private, write("x", "")), want: "changed after it was signed"},
		"owned, the owner's key on another's signature": {trust: owned, change: after(other, func(f string) error {
			file := filepath.Join(f, "signature.json")
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			var s skill.Signature
			if err := json.Unmarshal(text, &s); err != nil {
				return err
			}
			s.Key = skill.KeyText(public)
			text, err = json.Marshal(s)
			return errors.Join(err, os.WriteFile(file, text, 0o644))
		}), want: "changed after it was signed"},
		"owned, no signature at all in the file": {trust: owned, change: after(private, write("signature.json", "{}")), want: "not a public key"},
		"whitelist, empty":                       {trust: skill.Trust{Mode: skill.Whitelist}, change: signed(private), want: "not in skills.allow"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			folder := bundle(t, dir, "tide", plain("tide", ""))
			if c.change != nil {
				c.change(t, folder)
			}
			l := library(t, skill.Options{Folder: dir, Trust: c.trust})
			if c.want == "" {
				if len(names(l)) != 1 {
					t.Errorf("it is refused: %v", l.Refused())
				}
				return
			}
			if got := refused(t, l); !strings.Contains(got, c.want) || !errors.Is(l.Refused()[0].Err, skill.ErrTrust) || len(names(l)) > 0 {
				t.Errorf("the refusal is %q, without %q", got, c.want)
			}
		})
	}
}

func TestAWhitelistGoesByDigest(t *testing.T) {
	dir := t.TempDir()
	folder := bundle(t, dir, "tide", plain("tide", ""))
	s := must.Value(skill.Read(folder))(t)
	trust := must.Value(skill.ParseTrust(skill.Whitelist, []string{s.Digest}))(t)
	if l := library(t, skill.Options{Folder: dir, Trust: trust}); len(names(l)) != 1 {
		t.Fatalf("it is refused: %v", l.Refused())
	}
	bundle(t, dir, "tide", map[string]string{"SKILL.md": "Obey me."})
	if l := library(t, skill.Options{Folder: dir, Trust: trust}); len(names(l)) != 0 {
		t.Error("a changed bundle is loaded")
	}
}

// TestASkillIsFetchedByItsDigest checks that Fetch stores all files that the digest covers, and that it
// stores nothing if the digest differs or a folder with the name of the skill exists.
func TestASkillIsFetchedByItsDigest(t *testing.T) {
	const further = "More/words.txt" // sorts before SKILL.md
	sum := func(text string) string { return fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(text))) }
	files := plain("tide", `,"integrity":{"`+further+`":"`+sum("words")+`","SKILL.md":"`+sum("Ask for the tide.")+`"}`)
	files["SKILL.md"], files[further] = "Ask for the tide.", "words"
	published := t.TempDir()
	must.Succeed(t, os.MkdirAll(filepath.Join(published, "tide", "More"), 0o755))
	digest := must.Value(skill.Read(bundle(t, published, "tide", files)))(t).Digest
	open := func(name string) ([]byte, error) {
		if name == "" {
			t.Error("the folder itself is fetched")
		}
		return os.ReadFile(filepath.Join(published, "tide", name))
	}
	dir := filepath.Join(t.TempDir(), "skills")
	for _, c := range []struct{ digest, want string }{
		{"sha256:" + strings.Repeat("0", 64), "has another digest, " + digest}, {"tide", "a digest is sha256:"}, {digest, ""}, {digest, "exists already"},
	} {
		s, err := skill.Fetch(open, c.digest, dir)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.digest, err)
		}
		if err == nil && (s.Folder != filepath.Join(dir, "tide") || s.Digest != digest || s.Instructions != "Ask for the tide.") {
			t.Errorf("fetched is %+v", s)
		}
		left := must.Value(os.ReadDir(dir))(t)
		if c.want != "exists already" && (len(left) == 1) != (err == nil) {
			t.Errorf("%s: left is %v", c.digest, left)
		}
	}
	must.Value(skill.Read(filepath.Join(dir, "tide")))(t)
	bad := func(string) ([]byte, error) { return nil, errors.New("the server is away") }
	if _, err := skill.Fetch(bad, digest, dir); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("from a server that is away: %v", err)
	}
	climbs := func(name string) ([]byte, error) {
		if name == "manifest.json" {
			return []byte(`{"name":"tide","description":"d","integrity":{"../../evil":"sha256-00"}}`), nil
		}
		return []byte("x"), nil
	}
	if _, err := skill.Fetch(climbs, digest, dir); err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("a name that climbs: %v", err)
	}
}

func TestSettingsOfTrust(t *testing.T) {
	public, _ := keys(t)
	if trust, err := skill.ParseTrust("", []string{skill.KeyText(public)}); err != nil || trust.Mode != skill.OwnedOnly || len(trust.Owners) != 1 {
		t.Errorf("the default is %+v, %v", trust, err)
	}
	for _, allow := range []string{"", "sha256:00", "ed25519:AAAA", "tide", "sha256:" + strings.Repeat("G", 64)} {
		if _, err := skill.ParseTrust(skill.Whitelist, []string{allow}); err == nil {
			t.Errorf("%q is allowed", allow)
		}
	}
	if _, err := skill.ParseTrust("all", nil); err == nil {
		t.Error("a mode of trust that is none is allowed")
	}
}

// endpoint returns a library with the bundle tide. The bundle's only tool, also called tide, is the
// HTTP endpoint answer. The library's events go to h.
func endpoint(t *testing.T, h *heard, answer http.HandlerFunc) *skill.Library {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	files := plain("tide", `,"animationHint":"point","voicePattern":"High water at {{place}} is at {{at}}.","mcpExposed":true,`+
		`"sentences":{"en":["when is high water"]}`)
	files["SKILL.md"] = "---\nname: tide\n---\nAsk for the tide before you speak of boats.\n"
	files["tools.json"] = `{"tools":[{"name":"tide","description":"Looks up high water.","url":"` + server.URL + `/tide",` +
		`"input_schema":{"type":"object","properties":{"place":{"type":"string","enum":["Husum","Dover"]}},"required":["place"]}}]}`
	bundle(t, dir, "tide", files)
	o := anyOf(dir)
	o.Publish, o.Within = h.publish, time.Second
	l := library(t, o)
	if len(l.Refused()) > 0 {
		t.Fatal(l.Refused())
	}
	return l
}

func TestAnEndpointCarriesASkillOut(t *testing.T) {
	var h heard
	var asked string
	l := endpoint(t, &h, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = string(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"success":true,"sentiment":7,"data":{"at":"six"}}`)
	})
	r, err := l.Perform(t.Context(), skill.Call{Agent: "leo", Robot: "r1", Skill: "tide", Args: json.RawMessage(`{"place":"Husum"}`)})
	if err != nil || !r.Success || r.Output != "High water at Husum is at six." || *r.Sentiment != 1 {
		t.Errorf("the result is %+v, %v", r, err)
	}
	if asked != `{"agentId":"leo","args":{"place":"Husum"},"skill":"tide","tool":"tide"}` {
		t.Errorf("the endpoint is asked %s", asked)
	}
	if got := h.kinds(); !slices.Equal(got, []string{"skill_started", "gesture", "skill_done"}) {
		t.Errorf("the events are %v", got)
	}
	if d := h.events[2].(event.SkillDone); string(d.Data) != `{"at":"six"}` {
		t.Errorf("the data is %s", d.Data)
	}
	if g := h.events[1].(event.Gesture); g != (event.Gesture{Name: "point", By: event.BySkill, Skill: "tide"}) {
		t.Errorf("the gesture is %+v", g)
	}
}

func TestEndpointsAtFaultFailTheSkill(t *testing.T) {
	const dover = `{"place":"Dover"}`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		args   string
	}{
		"an error": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, dover},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, dover},
		"10 MB": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 10<<20)) }, dover},
		"silence": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, dover},
		"another form": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("[]"))
		}, dover},
		"no place": {nil, `{}`},
		"a number": {nil, `{"place":3}`},
		"not one":  {nil, `{"place":"Paris"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var h heard
			l := endpoint(t, &h, c.answer)
			r, err := l.Perform(t.Context(), skill.Call{Skill: "tide", Args: json.RawMessage(c.args)})
			if err == nil || r.Success {
				t.Fatalf("it succeeds: %+v", r)
			}
			if got := h.kinds(); !slices.Equal(got, []string{"skill_started", "gesture", "skill_failed"}) {
				t.Errorf("the events are %v", got)
			}
		})
	}
}

// TestAnAnswerWithoutSuccessFailsTheSkill checks the error and the event for a result of an endpoint
// with success false.
func TestAnAnswerWithoutSuccessFailsTheSkill(t *testing.T) {
	for answer, want := range map[string]string{
		`{"success":false,"output":"the sea is away"}`: "the sea is away",
		`{"success":false}`:                            "the skill did not succeed",
	} {
		var h heard
		l := endpoint(t, &h, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		})
		_, err := l.Perform(t.Context(), skill.Call{Skill: "tide", Args: json.RawMessage(`{"place":"Dover"}`)})
		if err == nil || err.Error() != want {
			t.Errorf("%s: the error is %v", answer, err)
		}
		if got := h.events[len(h.events)-1]; got != (event.SkillFailed{Skill: "tide", Error: want}) {
			t.Errorf("%s: the last event is %#v", answer, got)
		}
	}
}

func TestArgumentsAreComparedWithTheSchema(t *testing.T) {
	dir := t.TempDir()
	bundle(t, dir, "tide", plain("tide", `,"inputSchema":{"type":"object","properties":{"a":{"enum":[["x"],{"y":1},2]},`+
		`"b":{"type":["string","null"]},"c":{"type":"integer"},"d":true}}`))
	l := library(t, anyOf(dir))
	if len(l.Refused()) > 0 {
		t.Fatal(l.Refused())
	}
	for args, fits := range map[string]bool{
		`{"a":["x"]}`: true, `{"a":{"y":1}}`: true, `{"a":2}`: true, `{"a":["y"]}`: false, `{"a":{}}`: false,
		`{"b":"x"}`: true, `{"b":null}`: true, `{"b":1}`: false,
		`{"c":2}`: true, `{"c":2.5}`: false, `{"d":[]}`: true, `{"e":1}`: true,
	} {
		_, err := l.Perform(t.Context(), skill.Call{Skill: "tide", Args: json.RawMessage(args)})
		if (err == nil) != fits || err != nil && !errors.Is(err, skill.ErrArguments) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestARefusalOfArgumentsIsSmall checks that errors about arguments have at most 300 bytes, because
// other programs send the arguments, and the errors go to the log, to skins and to the page.
func TestARefusalOfArgumentsIsSmall(t *testing.T) {
	dir, long := t.TempDir(), strings.Repeat("ä\"\\n", 2000)
	bundle(t, dir, "tide", plain("tide", `,"inputSchema":{"type":"object","properties":{"a":{"type":"integer","enum":[1]}},"required":["a"]}`))
	l := library(t, anyOf(dir))
	for _, args := range []any{map[string]any{"a": long}, map[string]any{long: long}, map[string]any{"a": 2, long: 1}, []string{long}, long} {
		text := must.Value(json.Marshal(args))(t)
		_, err := l.Perform(t.Context(), skill.Call{Skill: "tide", Args: text})
		if !errors.Is(err, skill.ErrArguments) || len(err.Error()) > 300 {
			t.Errorf("it is refused with %d bytes: %.200s", len(err.Error()), err)
		}
	}
}

func TestAModelUsesSkills(t *testing.T) {
	var h heard
	l := endpoint(t, &h, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"output":"at six\nor so","data":{"at":"six or so"}}`)
	})
	turn := agent.Turn{Robot: "r1"}
	var offered []string
	for _, tool := range l.Tools(turn) {
		offered = append(offered, tool.Name)
	}
	if !slices.Equal(offered, []string{"tide", "perform_skill"}) {
		t.Errorf("the tools are %v", offered)
	}
	if got := l.Block(turn); got != "<skill name=\"tide\" version=\"1.2.0\">\nAsk for the tide before you speak of boats.\n</skill>" {
		t.Errorf("the prompt has %q", got)
	}
	for tool, args := range map[string]string{"tide": `{"place":"Dover"}`, "perform_skill": `{"skill":"tide","args":{"place":"Dover"}}`} {
		got, speech, err := l.Run(t.Context(), turn, tool, json.RawMessage(args))
		if err != nil || got != "at six or so" || speech != "High water at Dover is at six or so." {
			t.Errorf("%s answers %q and says %q, %v", tool, got, speech, err)
		}
	}
	greet := json.RawMessage(`{"skill":"greet","args":{"name":"Ann"}}`)
	if got, speech, err := l.Run(t.Context(), turn, "perform_skill", greet); err != nil || got != "Hello, Ann!" || speech != "" {
		t.Errorf("the skill answers %q and says %q, %v", got, speech, err)
	}
	stranger := agent.Turn{Robot: "r2", Untrusted: true}
	if len(l.Tools(stranger)) > 0 || l.Block(stranger) != "" {
		t.Error("a stranger is offered skills")
	}
	if _, _, err := l.Run(t.Context(), stranger, "tide", nil); !errors.Is(err, skill.ErrDenied) {
		t.Errorf("a stranger uses a skill: %v", err)
	}
}

// TestAPartOfASkillSaysNothing checks that the voicePattern applies to the handler, but not to the other
// tools of a skill.
func TestAPartOfASkillSaysNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "four") }))
	defer server.Close()
	dir := t.TempDir()
	files := plain("tide", `,"voicePattern":"It is {{output}}."`)
	files["tools.json"] = fmt.Sprintf(`{"tools":[{"name":"tide","description":"d","url":%[1]q},{"name":"metres","description":"d","url":%[1]q}]}`, server.URL)
	bundle(t, dir, "tide", files)
	o := anyOf(dir)
	o.Publish = (&heard{}).publish
	l := library(t, o)
	for tool, want := range map[string]string{"tide": "It is four.", "metres": ""} {
		if got, speech, err := l.Run(t.Context(), agent.Turn{}, tool, json.RawMessage(`{}`)); err != nil || got != "four" || speech != want {
			t.Errorf("%s answers %q and says %q, %v", tool, got, speech, err)
		}
	}
}

func TestACharacterHasItsOwnSkills(t *testing.T) {
	dir := t.TempDir()
	bundle(t, dir, "a", plain("a", ""))
	bundle(t, dir, "b", plain("b", ""))
	o := anyOf(dir)
	o.Skills = func(character string) []string {
		if character == "leo" {
			return []string{"b"}
		}
		return nil
	}
	l := library(t, o)
	if got := l.Block(agent.Turn{Persona: &agent.Persona{ID: "leo"}}); strings.Contains(got, `"a"`) || !strings.Contains(got, `"b"`) {
		t.Errorf("leo is told of %s", got)
	}
	if got := l.Block(agent.Turn{}); !strings.Contains(got, `"a"`) {
		t.Errorf("the default character is told of %s", got)
	}
	if _, err := l.Perform(t.Context(), skill.Call{Agent: "leo", Skill: "a"}); !errors.Is(err, skill.ErrUnknown) {
		t.Errorf("leo performs another's skill: %v", err)
	}
}

func TestBuiltInSkills(t *testing.T) {
	var h heard
	var kept string
	l := library(t, skill.Options{Publish: h.publish,
		Remember: func(c skill.Call, name, fact string) error { kept = c.Agent + " " + name + ": " + fact; return nil },
		Sign: func(m string) (event.Signed, error) {
			return event.Signed{Message: m, Address: "ed25519:x", Signature: "y"}, nil
		}})
	for _, c := range []struct{ skill, args, want string }{
		{"greet", `{}`, "Hello!"},
		{"greet", `{"name":"Ann"}`, "Hello, Ann!"},
		{"think", `{"thought":"What is a tide?"}`, "What is a tide?"},
		{"help", ``, "I know how to: greet, help, remember, sign-action, think."},
		{"remember", `{"name":"tea","content":"Ann drinks tea."}`, "I will remember that."},
		{"sign-action", `{"message":"I was here"}`, "I have signed it."},
	} {
		r, err := l.Perform(t.Context(), skill.Call{Agent: "leo", Skill: c.skill, Args: json.RawMessage(c.args)})
		if err != nil || r.Output != c.want {
			t.Errorf("%s says %q, %v; not %q", c.skill, r.Output, err, c.want)
		}
	}
	if kept != "leo tea: Ann drinks tea." {
		t.Errorf("kept is %q", kept)
	}
	if !slices.Contains(h.kinds(), "signed") {
		t.Errorf("the events are %v", h.kinds())
	}
	for _, name := range []string{"present-model", "validate-model"} {
		_, err := l.Perform(t.Context(), skill.Call{Skill: name})
		if err == nil || !strings.Contains(err.Error(), "a program that shows the agent's model") {
			t.Errorf("%s: %v", name, err)
		}
	}
	stranger := skill.Call{Skill: "sign-action", Untrusted: true, Args: json.RawMessage(`{"message":"x"}`)}
	if _, err := l.Perform(t.Context(), stranger); !errors.Is(err, skill.ErrDenied) {
		t.Errorf("a stranger has something signed: %v", err)
	}
}

func TestASkillThatIsNotThere(t *testing.T) {
	var h heard
	l := library(t, skill.Options{Publish: h.publish})
	r, err := l.Perform(t.Context(), skill.Call{Skill: "fly"})
	if !errors.Is(err, skill.ErrUnknown) || r.Success || *r.Sentiment != -0.3 {
		t.Errorf("the result is %+v, %v", r, err)
	}
	if got := h.kinds(); !slices.Equal(got, []string{"skill_failed"}) {
		t.Errorf("the events are %v", got)
	}
}

// sea is an MCP server that records the latest call.
type sea struct{ called string }

func (s *sea) Tools(context.Context) []thinker.Tool { return nil }

func (s *sea) Call(_ context.Context, name string, args json.RawMessage) (string, error) {
	s.called = name + string(args)
	return "six", nil
}

func TestAnMCPServerCarriesAToolOut(t *testing.T) {
	dir := t.TempDir()
	files := plain("tide", `,"mcpServers":{"sea":"http://127.0.0.1:9/mcp"},"handler":"high_water"`)
	files["tools.json"] = `{"tools":[{"name":"high_water","description":"d","mcp":"sea"}]}`
	bundle(t, dir, "tide", files)
	var s sea
	o := anyOf(dir)
	o.Server = func(name, address string) (thinker.ToolSource, error) {
		if name != "sea" || address != "http://127.0.0.1:9/mcp" {
			t.Errorf("the server is %s at %s", name, address)
		}
		return &s, nil
	}
	l := library(t, o)
	r, err := l.Perform(t.Context(), skill.Call{Skill: "tide", Args: json.RawMessage(`{"place":"Dover"}`)})
	if err != nil || r.Output != "six" || s.called != `sea.high_water{"place":"Dover"}` {
		t.Errorf("the result is %+v, %v; called is %s", r, err, s.called)
	}
}

func TestOtherProgramsCallExposedSkills(t *testing.T) {
	var h heard
	l := endpoint(t, &h, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "at six") })
	var offered []string
	for _, tool := range l.Exposed() {
		offered = append(offered, tool.Name)
	}
	if !slices.Equal(offered, []string{"skill_tide", "skill_greet", "skill_help", "skill_think"}) {
		t.Errorf("exposed are %v", offered)
	}
	if got, err := l.CallExposed(t.Context(), "skill_tide", json.RawMessage(`{"place":"Dover"}`), time.Time{}); err != nil || got != "at six" {
		t.Errorf("it answers %q, %v", got, err)
	}
	if _, err := l.CallExposed(t.Context(), "skill_remember", nil, time.Time{}); !errors.Is(err, skill.ErrUnknown) {
		t.Errorf("what is not exposed is called: %v", err)
	}
	if got := l.All()[0].SentencesIn("en-GB"); !slices.Equal(got, []string{"when is high water"}) {
		t.Errorf("the sentences are %v", got)
	}
}

func TestOnlySoManySkillsAreAtWork(t *testing.T) {
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	l := library(t, skill.Options{Remember: func(skill.Call, string, string) error {
		begun <- struct{}{}
		<-end
		return nil
	}})
	call := skill.Call{Skill: "remember", Args: json.RawMessage(`{"content":"x"}`)}
	const most = 4
	for range most {
		go func() {
			_, err := l.Perform(t.Context(), call)
			ended <- err
		}()
		<-begun
	}
	if _, err := l.Perform(t.Context(), call); !errors.Is(err, skill.ErrBusy) {
		t.Errorf("a fifth is at work: %v", err)
	}
	close(end)
	for range most {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestBuiltInSkillsSpeakTheLanguage checks that built-in skills answer in the language of the call or, if
// it has none, in the configured language, and that no answer is English in another language.
func TestBuiltInSkillsSpeakTheLanguage(t *testing.T) {
	l := library(t, skill.Options{Language: func() string { return "de-AT" }, Remember: func(skill.Call, string, string) error { return nil },
		Sign: func(m string) (event.Signed, error) { return event.Signed{Message: m, Signature: "y"}, nil }})
	for _, c := range []struct{ language, skill, args, want string }{
		{"", "greet", `{"name":"Ann"}`, "Hallo, Ann!"},
		{"", "greet", `{}`, "Hallo!"},
		{"", "help", ``, "Ich kann: grüßen, helfen, mir etwas merken, nachdenken, unterschreiben."},
		{"en-GB", "greet", `{"name":"Ann"}`, "Hello, Ann!"},
		{"sv", "greet", `{"name":"Ann"}`, "Hello, Ann!"}, // there are no Swedish phrases
		{"ja", "greet", `{"name":"花子"}`, "花子さん、こんにちは！"},
		{"zh-CN", "greet", `{}`, "你好！"},
		{"es", "remember", `{"content":"x"}`, "Lo recordaré."},
		{"fr", "sign-action", `{"message":"x"}`, "Je l'ai signé."},
	} {
		r, err := l.Perform(t.Context(), skill.Call{Skill: c.skill, Args: json.RawMessage(c.args), Language: c.language})
		if err != nil || r.Output != c.want {
			t.Errorf("%s in %q says %q, %v; not %q", c.skill, c.language, r.Output, err, c.want)
		}
	}
	english := map[string]string{}
	for _, language := range []string{"en", "de", "es", "fr", "ja", "zh"} {
		for _, name := range []string{"greet", "help", "remember", "sign-action"} {
			r, err := l.Perform(t.Context(), skill.Call{Skill: name, Args: json.RawMessage(`{"content":"x","message":"x"}`), Language: language})
			if err != nil || r.Output == "" || strings.Contains(r.Output, "{") {
				t.Errorf("%s in %s says %q, %v", name, language, r.Output, err)
			}
			if language == "en" {
				english[name] = r.Output
			} else if r.Output == english[name] {
				t.Errorf("%s in %s is English: %q", name, language, r.Output)
			}
		}
	}
	got, _, err := l.Run(t.Context(), agent.Turn{Language: "fr-FR"}, "perform_skill", json.RawMessage(`{"skill":"greet","args":{"name":"Léa"}}`))
	if err != nil || got != "Bonjour Léa !" {
		t.Errorf("for a model's turn it says %q, %v", got, err)
	}
}
