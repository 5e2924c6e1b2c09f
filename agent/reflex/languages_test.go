package reflex_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/reflex"
	"perch/device"
	"perch/language"
	"perch/must"
	"perch/store/storetest"
)

// TestLanguages checks intents, slots and answers in each language but English. A line of a file in
// testdata/said is an utterance, the result of Recognized and the answer, separated by " => ". All
// lines of a file are said to one brain. A line that begins with "!" is an utterance that must not
// be recognized. With PERCH_GOLDEN=rewrite, the test logs the lines with the current results.
func TestLanguages(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "said", "*.txt"))
	if err != nil || len(files) != len(language.All())-1 {
		t.Fatal(files, err) // there is no file for English, which other tests cover
	}
	for _, name := range files {
		tag := strings.TrimSuffix(filepath.Base(name), ".txt")
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			text := must.Value(os.ReadFile(name))(t)
			b := must.Value(reflex.Load(tag, ""))(t)
			brain := reflex.New([]*reflex.Book{b}, "Chan", newMemory(), newTimers(&storetest.Table[agent.Timer]{}), nil)
			var intents []string
			understood, not := 0, 0
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSuffix(line, "\n")
				if said, is := strings.CutPrefix(line, "!"); is {
					if got := b.Recognized(said); got != "" {
						t.Errorf("%s is recognized as %s", said, got)
					}
					not++
					continue
				}
				parts := strings.Split(line, " => ")
				got := b.Recognized(parts[0])
				answer := said(t, brain, parts[0])
				if os.Getenv("PERCH_GOLDEN") == "rewrite" {
					t.Log(parts[0] + " => " + got + " => " + answer)
				}
				if len(parts) != 3 || got != parts[1] || answer != parts[2] {
					t.Errorf("%s => %s => %s", parts[0], got, answer)
				}
				intent, _, _ := strings.Cut(got, " ")
				intents = append(intents, intent)
				understood++
			}
			for _, want := range b.Intents() {
				if !slices.Contains(intents, want) {
					t.Errorf("nothing is recognized as %s", want)
				}
			}
			if understood < 30 || not < 8 {
				t.Errorf("%d utterances are understood and %d not", understood, not)
			}
		})
	}
}

// said returns what a brain says to a text from a robot with every tool.
func said(t *testing.T, b *reflex.Brain, text string) string {
	t.Helper()
	r := stackChan()
	r.answer = "OK."
	r.tools = append(r.tools, tool("self.camera.take_photo", map[string]device.Argument{"question": {Type: "string"}}, "question"))
	return think(t, b, agent.Turn{Robot: "a0b1c2d3e4f5", Session: "s", Text: text, Body: r}).said
}

// TestSentencesInAnyScript checks that an owner's file may mix scripts, with their digits and
// punctuation, and that the grammar contains only the sentences and entries with ASCII letters.
func TestSentencesInAnyScript(t *testing.T) {
	b, err := load(t, `
language: en-GB
lists:
  thing: [Geige, ヴァイオリン|バイオリン]
  pet: [Мурка, 小白|小黑, ميمي, καρδιά]
  city: [東京, กรุงเทพ]
intents:
  pets:
    sentences: ["где {pet}", "{pet}（在|は）哪里", "أين {pet}", "πού είναι {pet}", "where's {pet} today"]
    answer: "😆 {pet}!"
  city:
    sentences: ["[the] weather in {city}"]
    answer: "{city}"
  wait:
    sentences: ["{hour:number}時に集合", "นัด {hour:number} โมง"]
    answer: "{hour}"
`)
	must.Succeed(t, err)
	for text, want := range map[string]string{
		"Где Мурка?": "pets pet=Мурка", "ГДЕ МУРКА": "pets pet=Мурка", "小黑在哪里？": "pets pet=小白", "小白は哪里": "pets pet=小白",
		"أين ميمي؟": "pets pet=ميمي", "Πού είναι ΚΑΡΔΙΆ;": "pets pet=καρδιά", "Where’s Мурка today?": "pets pet=Мурка",
		"weather in 東 京": "city city=東京", "the weather in กรุงเทพ": "city city=กรุงเทพ", "七時に集合": "", "７時に集合！": "wait hour=7",
		"นัด ๗ โมง": "wait hour=7", "where is my geige": "recall_place be=is thing=Geige", "where is my バイオリン": "recall_place be=is thing=ヴァイオリン",
		"東京の天気": "", "где": "", "Где Мурка where's 小白 today": "", "weather in tokyo": "",
	} {
		if got := b.Recognized(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	lists := map[string]string{}
	for _, r := range b.Rules() {
		if strings.ContainsFunc(r.Body, func(r rune) bool { return r > 127 }) ||
			strings.Contains(r.Body, "list_city") || strings.Contains(r.Body, "list_pet") {
			t.Errorf("the grammar has %s", r.Body)
		}
		lists[r.Name] = r.Body
	}
	if !strings.HasSuffix(lists["list_thing"], "| geige") || len(b.Unheard()) != 8 || b.Unheard()[0] != "own.yaml:9" {
		t.Errorf("the list is %q, not listened for are %q", lists["list_thing"], b.Unheard())
	}
}

// TestTheGrammarIsEnglish checks that books in other languages have no grammar.
func TestTheGrammarIsEnglish(t *testing.T) {
	for _, tag := range language.All() {
		b, err := reflex.Load(string(tag), "")
		if err != nil || b.Language() != string(tag) {
			t.Fatal(b.Language(), err)
		}
		if is := tag == language.English; (len(b.Rules()) > 0) != is || (len(b.Answers()) > 0) != is || len(b.Unheard()) > 0 {
			t.Errorf("%s: %d rules, %d answers, %q", tag, len(b.Rules()), len(b.Answers()), b.Unheard())
		}
	}
}

// TestMixedLanguages checks that the book of the turn's language is searched before the other books,
// that the answer is in the language of the book that matches, and that without a match it is in the
// language of the turn.
func TestMixedLanguages(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	must.Succeed(t, os.WriteFile(own, []byte("language: ja\nintents: {tea: {sentences: [お茶], answer: 緑茶}, echo: {sentences: [stop], answer: はい}}"), 0o600))
	books := must.Value(reflex.LoadEach([]string{"en-GB", "de", "ja"}, own))(t)
	brain := reflex.New(books, "Chan", nil, nil, nil)
	for _, c := range []struct{ tag, said, want string }{
		{"", "What is your name?", "My name is Chan."}, {"de-AT", "Wie heißt du?", "Ich heiße Chan."}, {"de", "お名前は？", "私の名前はChanです。"},
		{"xx", "wie heißt du", "Ich heiße Chan."}, {"ja", "stop", "はい"}, {"de", "Stop!", "Tschüss."}, {"en", "お茶", "緑茶"},
		{"de", "Wie is your name", "Darauf weiß ich keine Antwort. Sag Hilfe, dann erzähle ich dir, was ich kann."},
		{"fr", "Quelle heure est-il ?", "I do not know what to say to that. Say help to hear what I can do."},
	} {
		if got := think(t, brain, agent.Turn{Text: c.said, Language: c.tag}).said; got != c.want {
			t.Errorf("%s in %s: %q", c.said, c.tag, got)
		}
	}
	if _, err := reflex.LoadEach([]string{"en", "de"}, own); err == nil || !strings.Contains(err.Error(), "own.yaml: its language is \"ja\"") {
		t.Errorf("a file in a language that is not spoken: %v", err)
	}
}

// TestFurtherLanguages checks that a turn in a language that is not configured is answered from the
// book of that language, which is loaded once, or from the English book if there is none.
func TestFurtherLanguages(t *testing.T) {
	books := must.Value(reflex.LoadEach([]string{"de"}, ""))(t)
	loaded := map[string]int{}
	brain := reflex.New(books, "Chan", nil, nil, nil)
	brain.LoadOthers(func(tag string) (*reflex.Book, error) {
		loaded[tag]++
		return reflex.Load(tag, "")
	})
	for _, c := range []struct{ tag, said, want string }{
		{"", "Wie heißt du?", "Ich heiße Chan."}, {"de-CH", "Wie heißt du?", "Ich heiße Chan."}, {"it", "What is your name?", "My name is Chan."},
		{"it", "Come ti chiami?", "I do not know what to say to that. Say help to hear what I can do."}, {"tlh", "Wie heißt du?", "Ich heiße Chan."},
		{"fr-CA", "Comment tu t'appelles ?", "Je m'appelle Chan."}, {"fr", "Wie heißt du?", "Ich heiße Chan."}, {"zh-CN", "你叫什么名字？", "我叫Chan。"},
	} {
		if got := think(t, brain, agent.Turn{Text: c.said, Language: c.tag}).said; got != c.want {
			t.Errorf("%s in %s: %q", c.said, c.tag, got)
		}
	}
	if want := map[string]int{"en": 1, "fr": 1, "zh-Hans": 1}; !maps.Equal(loaded, want) {
		t.Errorf("loaded are %v, not %v", loaded, want)
	}
}

// TestTimesOfDay checks the time of an alarm, also across changes to and from
// daylight saving time. An hour without a part of the day means its next occurrence.
func TestTimesOfDay(t *testing.T) {
	berlin := must.Value(time.LoadLocation("Europe/Berlin"))(t)
	books := must.Value(reflex.LoadEach([]string{"de"}, ""))(t)
	at := func(month time.Month, day, hour, minute int) time.Time {
		return time.Date(2026, month, day, hour, minute, 30, 0, berlin)
	}
	for _, c := range []struct {
		now  time.Time
		said string
		due  string // day of the month and time of the alarm; empty if no alarm is set
	}{
		{at(11, 20, 12, 5), "um drei", "20 15:00"}, {at(11, 20, 2, 5), "um drei Uhr", "20 03:00"},
		{at(11, 20, 15, 0), "um drei", "21 03:00"},
		{at(11, 20, 12, 5), "um drei Uhr nachts", "21 03:00"}, {at(11, 20, 12, 5), "um halb vier", "20 15:30"},
		{at(11, 20, 12, 5), "um 23 Uhr 59", "20 23:59"},
		{at(11, 20, 12, 5), "um fünf vor halb sieben", "20 18:25"}, {at(11, 20, 12, 5), "um Viertel vor eins", "20 12:45"},
		{at(11, 20, 12, 5), "um zwölf Uhr mittags", "21 12:00"}, {at(11, 20, 12, 5), "um 12 Uhr nachts", "21 00:00"},
		{at(11, 20, 12, 5), "um 0 Uhr", "21 00:00"},
		{at(11, 20, 12, 5), "morgen um 0 Uhr 30", "21 00:30"}, {at(11, 20, 12, 5), "jeden Tag um 0 Uhr", "21 00:00"},
		{at(11, 20, 12, 5), "um 24 Uhr", "21 00:00"}, {at(11, 20, 9, 5), "um sieben Uhr früh", "21 07:00"},
		{at(10, 24, 22, 0), "um sieben Uhr morgens", "25 07:00"},
		{at(3, 28, 22, 0), "um sieben Uhr morgens", "29 07:00"}, {at(3, 28, 22, 0), "um halb drei nachts", "29 03:00"},
		{at(11, 20, 5, 0), "morgen um sieben", "21 07:00"}, {at(11, 20, 7, 30), "jeden Tag um sieben", "21 07:00"}, // not at seven in the evening
		{at(11, 20, 12, 5), "montags um drei", "23 15:00"}, {at(11, 20, 12, 5), "werktags um drei Uhr nachts", "23 03:00"},
		{at(11, 20, 8, 0), "um 25 Uhr", ""}, {at(11, 20, 8, 0), "um 7 Uhr 60", ""},
	} {
		var table storetest.Table[agent.Timer]
		think(t, reflex.New(books, "Chan", nil, newTimers(&table), nil), agent.Turn{Text: "Weck mich " + c.said, Now: c.now})
		due := ""
		for _, timer := range table.Kept {
			due = timer.Due.In(berlin).Format("2 15:04")
		}
		if due != c.due {
			t.Errorf("%s, %s: %q, want %q", c.now, c.said, due, c.due)
		}
	}
}

// TestHostileUtterances checks that the number of steps is bounded for long utterances and for
// sentences that an utterance can match in very many ways.
func TestHostileUtterances(t *testing.T) {
	many := strings.Repeat("[あ|ああ|{number}]", 12)
	var own strings.Builder
	own.WriteString("language: ja\nintents:\n  a:\n    answer: z\n    sentences:\n")
	for range 100 {
		own.WriteString("    - \"" + many + "終わり\"\n")
	}
	name := filepath.Join(t.TempDir(), "own.yaml")
	must.Succeed(t, os.WriteFile(name, []byte(own.String()), 0o600))
	b := must.Value(reflex.Load("ja", name))(t)
	if steps := b.Steps("明日の朝七時にアラームをセットして"); steps > 200_000/2 {
		t.Errorf("what people say takes %d steps", steps)
	}
	for _, text := range []string{strings.Repeat("あ", 24), strings.Repeat("四十", 30),
		strings.Repeat("ﷺ", 200), strings.Repeat("1", 3000), strings.Repeat("今", 1<<20)} {
		if steps := b.Steps(text); steps > 220_000 || b.Understands(text) {
			t.Errorf("%.20q takes %d steps", text, steps)
		}
	}
}

// TestHintsOfThePageAreUnderstood checks that the sentences that the web page proposes in quotation
// marks are recognized in the language of the page.
func TestHintsOfThePageAreUnderstood(t *testing.T) {
	quoted := regexp.MustCompile(`[“„«「](.+?)[”“»」]`)
	for _, tag := range language.All() {
		text := must.Value(os.ReadFile(filepath.Join("../../language", string(tag), "page.json")))(t)
		var page map[string]map[string]string
		must.Succeed(t, json.Unmarshal(text, &page))
		b := must.Value(reflex.Load(string(tag), ""))(t)
		for view, intent := range map[string]string{"timers": "timer_set", "memory": "remember_place"} {
			hint := quoted.FindStringSubmatch(page[view]["noneHint"])
			if hint == nil {
				t.Errorf("%s: %s.noneHint proposes nothing: %s", tag, view, page[view]["noneHint"])
				continue
			}
			if got, _, _ := strings.Cut(b.Recognized(strings.TrimSpace(hint[1])), " "); got != intent {
				t.Errorf("%s: %q of the page is recognized as %q, not as %s", tag, hint[1], got, intent)
			}
		}
	}
}

// TestTableOfIntents compares the table in docs/reflex.md with the sentences of each language.
// PERCH_GOLDEN=rewrite rewrites the table.
func TestTableOfIntents(t *testing.T) {
	var names []string
	has := map[string]map[language.Tag]bool{}
	for _, tag := range language.All() {
		b := must.Value(reflex.Load(string(tag), ""))(t)
		for _, name := range b.Intents() {
			if has[name] == nil {
				names, has[name] = append(names, name), map[language.Tag]bool{}
			}
			has[name][tag] = true
		}
	}
	slices.Sort(names)
	table := "| intent |"
	for _, tag := range language.All() {
		table += fmt.Sprintf(" `%s` |", tag)
	}
	table += "\n|---|" + strings.Repeat("---|", len(language.All())) + "\n"
	for _, name := range names {
		table += "| " + name + " |"
		for _, tag := range language.All() {
			if has[name][tag] {
				table += " yes |"
			} else {
				table += " |"
			}
		}
		table += "\n"
	}
	const path, begin, end = "../../docs/reflex.md", "<!-- intents by language -->\n", "<!-- end of intents -->"
	text := must.Value(os.ReadFile(path))(t)
	before, rest, found := strings.Cut(string(text), begin)
	old, after, ended := strings.Cut(rest, end)
	switch {
	case !found || !ended:
		t.Fatalf("%s has no place for the table", path)
	case old == table:
	case os.Getenv("PERCH_GOLDEN") == "rewrite":
		must.Succeed(t, os.WriteFile(path, []byte(before+begin+table+end+after), 0o644))
	default:
		t.Errorf("the table in %s is of other sentences; PERCH_GOLDEN=rewrite go test ./agent/reflex writes it", path)
	}
}
