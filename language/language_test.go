package language

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode"

	"perch/must"
)

// TestCataloguesAreWhole checks that every language has the messages of English and no others, with the
// same values and the same emoji.
func TestCataloguesAreWhole(t *testing.T) {
	english := must.Value(load(catalogues, English))(t)
	for _, tag := range All() {
		w, err := load(catalogues, tag)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, fault := range differences(english, w) {
			t.Errorf("%s: %s", tag, fault)
		}
	}
}

// differences returns the faults of a catalogue in comparison with the English one.
func differences(english, w *Words) (faults []string) {
	for _, key := range english.keys() {
		if !w.Has(key) {
			faults = append(faults, key+" is missing")
			continue
		}
		said := w.messages[key]
		switch group, _, _ := strings.Cut(key, "."); {
		case group == "time" || group == "date": // languages count hours and days in several ways
			for _, v := range w.values(key) {
				if !slices.Contains([]string{"hour", "hour11", "hour12", "minute", "minute2", "part", "time", "weekday", "day", "month"}, v) {
					faults = append(faults, key+" has a value {"+v+"}, which nobody fills")
				}
			}
		case !slices.Equal(w.values(key), english.values(key)):
			faults = append(faults, key+" has the values "+strings.Join(w.values(key), " ")+"; English has "+strings.Join(english.values(key), " "))
		}
		if face(said) != face(english.messages[key]) {
			faults = append(faults, key+" has another face than in English")
		}
	}
	for _, key := range w.keys() {
		if !english.Has(key) {
			faults = append(faults, key+" is unknown in English")
		}
	}
	return faults
}

// face returns the emoji that a message begins with, or "".
func face(m message) string {
	first, _, _ := strings.Cut(m[0].text, " ")
	if strings.ContainsFunc(first, func(r rune) bool { return unicode.Is(unicode.So, r) }) {
		return first
	}
	return ""
}

// TestFaultsOfACatalogue checks that load and differences report each kind of fault.
func TestFaultsOfACatalogue(t *testing.T) {
	const calendar = "calendar: {weekdays: [a, b, c, d, e, f, g], months: [a, b, c, d, e, f, g, h, i, j, k, l], parts: {0: ''}}\n"
	of := func(tag Tag, text string) (*Words, error) {
		return load(fstest.MapFS{string(tag) + "/spoken.yaml": {Data: []byte(calendar + text)},
			string(tag) + "/shown.yaml": {Data: []byte("{}")}}, tag)
	}
	for text, want := range map[string]string{
		`g: {k: "{n, other: # Stunden}"}`:         `lacks the form "one"`,
		`g: {k: "{n, one: a, few: b, other: c}"}`: `has the form "few", which de does not have`,
		`g: {k: "{n, one: a, one: b, other: c}"}`: "twice",
		`g: {k: "{n, single: a, other: b}"}`:      "is not a plural form",
		`g: {k: "{n, one: {m}, other: b}"}`:       "no matching }",
		`g: {k: "a } b"}`:                         "has no {",
		`g: {k: "{A b}"}`:                         "is not the name of a value",
		"g: {k: {l: m}}":                          "cannot unmarshal",
		"calendar: {weekdays: [a]}":               "already defined",
		"g: {k: a}\ng: {l: b}":                    "already defined",
	} {
		if _, err := of(German, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := of(Japanese, `g: {k: "{n, one: 一時間, other: #時間}"}`); err == nil || !strings.Contains(err.Error(), "ja does not have") {
		t.Errorf("a Japanese plural: %v", err)
	}
	english := must.Value(of(English, `g: {k: "😊 a {x}", l: b}`))(t)
	german := must.Value(of(German, `g: {k: "a {y}", m: b}`))(t)
	if got := strings.Join(differences(english, german), "; "); got != "g.k has the values y; English has x; g.k has another face than in English; "+
		"g.l is missing; g.m is unknown in English" {
		t.Error(got)
	}
	if w, err := load(fstest.MapFS{"de/spoken.yaml": {Data: []byte("g: {}")}}, German); err == nil {
		t.Errorf("without a calendar: %v", w)
	}
}

// TestMessagesAreUsed checks that the programs use every message of the catalogue, and that the catalogue has
// every message that they use.
func TestMessagesAreUsed(t *testing.T) {
	programs := programTexts(t)
	named, said := programs.named, programs.said
	if len(named) < 1000 {
		t.Fatalf("only %d texts were found in the programs", len(named))
	}
	words := new(Catalogue).In("en")
	for _, key := range words.keys() {
		group, name, _ := strings.Cut(key, ".")
		if named[key] == "" && (named[group+"."] == "" || named[name] == "") { // a program may join the group and the name
			t.Errorf("no program says %s", key)
		}
	}
	for key, where := range said {
		if !words.Has(key) {
			t.Errorf("%s says %s, which no catalogue has", where, key)
		}
	}
}

// texts holds the literal texts of the programs, with the file of each.
type texts struct {
	named  map[string]string // all texts
	said   map[string]string // keys passed to Message
	errors map[string]string // formats of errors
	notes  map[string]string // formats of the notes of health.Part
}

// programTexts reads the texts of all programs of the repository.
func programTexts(t *testing.T) texts {
	t.Helper()
	all := texts{map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}}
	inTemplate := regexp.MustCompile(`\.Message "([a-z_.]+)"`)
	isKey := regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`)
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		others := []string{"node_modules", "testdata", "dist", "bin"}
		if d.IsDir() && (name != ".." && strings.HasPrefix(d.Name(), ".") || slices.Contains(others, d.Name())) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".html") { // a template
			text, err := os.ReadFile(name)
			for _, m := range inTemplate.FindAllStringSubmatch(string(text), -1) {
				all.named[m[1]], all.said[m[1]] = name, name
			}
			return err
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if e, is := n.(ast.Expr); is {
				all.named[whole(e)] = name
			}
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, is := n.Key.(*ast.Ident); is && key.Name == "Note" {
					all.notes[format(n.Value)] = name
				}
			case *ast.AssignStmt:
				if field, is := n.Lhs[0].(*ast.SelectorExpr); is && field.Sel.Name == "Note" {
					all.notes[format(n.Rhs[0])] = name
				}
			}
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) == 0 {
				return true
			}
			called, is := call.Fun.(*ast.SelectorExpr)
			text := whole(call.Args[0])
			switch {
			case !is:
			case called.Sel.Name == "Message" && isKey.MatchString(text):
				all.said[text] = name
			case called.Sel.Name == "Errorf", called.Sel.Name == "New" && text != "":
				all.errors[text] = name
			case called.Sel.Name == "Saying":
				all.notes[format(call.Args[0])] = name
			}
			return true
		})
		return nil
	})
	must.Succeed(t, err)
	return all
}

// format returns the format of an expression: a literal text, or the first argument of Sprintf. For other
// expressions it returns "".
func format(e ast.Expr) string {
	if call, is := e.(*ast.CallExpr); is {
		if called, is := call.Fun.(*ast.SelectorExpr); is && called.Sel.Name == "Sprintf" {
			return whole(call.Args[0])
		}
	}
	return whole(e)
}

// whole returns a literal text, which may be the sum of several. It returns %s in place of parts that are not
// literal, and "" if no part is literal.
func whole(e ast.Node) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if x, y := whole(e.X), whole(e.Y); e.Op == token.ADD && x+y != "" {
			return cmp.Or(x, "%s") + cmp.Or(y, "%s")
		}
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	}
	return ""
}

func TestMatch(t *testing.T) {
	for tags, want := range map[string]Tag{
		"de-AT": German, "zh": Chinese, "zh-CN": Chinese, "zh-TW": Chinese, "ja-JP": Japanese, "es-419": Spanish,
		"fr_CA": French, "en-GB": English, "xx,fr": French, "german": German, "Chinese": Chinese, "pt,de": German,
		"xx": "", "": "", "pt": "",
		"tlh": "", "gsw": "", "is": "", "cy": "", "gl": "", "und": "", "no tag": "", "de-" + strings.Repeat("x", 40): "", "\xff": "",
	} {
		if got, found := Match(strings.Split(tags, ",")...); got != want || found != (want != "") {
			t.Errorf("Match(%q) is %q, %v", tags, got, found)
		}
	}
	if got, _ := Among([]string{"it", "zh-CN"}, "xx", "zh-Hans"); got != "zh-CN" {
		t.Errorf("among others it is %q", got)
	}
	if got, found := Among[Tag](nil, "en"); found {
		t.Errorf("among none it is %q", got)
	}
}

func TestAcceptLanguage(t *testing.T) {
	for header, want := range map[string]Tag{
		"zh-CN": Chinese, "de-DE,de;q=0.9,en;q=0.8": German, "en;q=0.2,ja;q=0.7": Japanese, "xx": "", "xx,fr;q=0.5": French, "*": "", "": "",
		"de;q=0, es": Spanish, ";;;,,,q=,de": German, "\x00\xff": "", "it, pt;q=0.5": "",
		strings.Repeat("xx,", 2000) + "de": "", strings.Repeat("-", 1<<20): "", strings.Repeat("a-", 300) + ",de": "",
	} {
		if got, found := Match(Accepted(header)...); got != want || found != (want != "") {
			t.Errorf("the language of %.40q is %q, %v", header, got, found)
		}
	}
}

// FuzzFromHeader reads arbitrary Accept-Language headers. The number of tags must be bounded.
func FuzzFromHeader(f *testing.F) {
	f.Add("de-DE,de;q=0.9,en;q=0.8")
	f.Add("xx;q=1.5,*;q=-1")
	f.Fuzz(func(t *testing.T, header string) {
		if tags := Accepted(header); len(tags) > maxAccepted {
			t.Errorf("%d languages", len(tags))
		}
		if tag, found := Match(Accepted(header)...); found != slices.Contains(All(), tag) {
			t.Errorf("%q, %v", tag, found)
		}
	})
}

func TestSay(t *testing.T) {
	c := new(Catalogue)
	if got := c.In("xx").Message("phrases.awake"); got != "😊 Yes?" {
		t.Errorf("in an unknown language it says %q", got)
	}
	if got := c.In("de-AT").Message("phrases.nothing"); got != "phrases.nothing" {
		t.Errorf("an unknown message is %q", got)
	}
	if got := c.In("es").Message("duration.two", "first", "{second}"); got != "{second} y {second}" {
		t.Errorf("a value that is not given, and one with braces: %q", got)
	}
	if c.In("de") != c.In("de-CH") {
		t.Error("a catalogue is read twice")
	}
	for _, tag := range All() {
		if c.In(string(tag)).Name() == "language.name" {
			t.Errorf("%s has no name", tag)
		}
	}
}

func TestSpoken(t *testing.T) {
	type spoken struct{ clock, half, one, date, first, long, short, single string }
	at := func(hour, minute, day int) time.Time { return time.Date(2026, 1, day, hour, minute, 0, 0, time.UTC) }
	for tag, want := range map[Tag]spoken{
		English: {"It is 3:04 PM.", "12:30 AM", "It is 1:00 PM.", "Sunday, January 25", "Thursday, January 1",
			"2 hours and 5 minutes", "1 minute and 3 seconds", "1 second"},
		German: {"Es ist 15 Uhr 4.", "0 Uhr 30", "Es ist 13 Uhr.", "Sonntag, der 25. Januar", "Donnerstag, der 1. Januar",
			"2 Stunden und 5 Minuten", "eine Minute und 3 Sekunden", "eine Sekunde"},
		Japanese: {"午後3時4分です。", "午前0時半", "午後1時です。", "1月25日、日曜日", "1月1日、木曜日", "2時間5分", "1分3秒", "1秒"},
		Chinese:  {"现在是下午3点04分。", "凌晨12点半", "现在是下午1点。", "1月25日，星期日", "1月1日，星期四", "2小时5分钟", "1分钟3秒", "1秒"},
		Spanish: {"Son las 3 y 4 de la tarde.", "las 12 y media de la noche", "Es la una de la tarde.", "domingo, 25 de enero", "jueves, 1 de enero",
			"2 horas y 5 minutos", "un minuto y 3 segundos", "un segundo"},
		French: {"Il est 15 heures 4.", "0 heure 30", "Il est 13 heures.", "dimanche 25 janvier", "jeudi 1er janvier",
			"2 heures et 5 minutes", "une minute et 3 secondes", "une seconde"},
	} {
		w := new(Catalogue).In(string(tag))
		got := spoken{w.Clock(at(15, 4, 25)), w.Time(at(0, 30, 25)), w.Clock(at(13, 0, 25)), w.Date(at(9, 0, 25)), w.Date(at(9, 0, 1)),
			w.Duration(2*time.Hour + 5*time.Minute + 7*time.Second), w.Duration(63*time.Second + 400*time.Millisecond), w.Duration(0)}
		if got != want {
			t.Errorf("%s:\n%+v, want\n%+v", tag, got, want)
		}
	}
}

// values returns the names of a message's values, sorted and without duplicates.
func (w *Words) values(key string) (names []string) {
	for _, p := range w.messages[key] {
		if p.value != "" {
			names = append(names, p.value)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// keys returns the keys of all messages, sorted.
func (w *Words) keys() []string { return slices.Sorted(maps.Keys(w.messages)) }
