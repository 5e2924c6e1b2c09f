package thinker_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"perch/agent"
	"perch/agent/thinker"
)

// spoken returns the replies of a Speech to a text that is written in pieces. It sorts thoughts first,
// because their place among the other replies depends on the pieces.
func spoken(language string, deltas ...string) (all []agent.Reply) {
	s := thinker.NewSpeech(language)
	for _, d := range deltas {
		all = append(all, s.Write(d)...)
	}
	all = append(all, s.Flush()...)
	slices.SortStableFunc(all, func(a, b agent.Reply) int { return thoughtFirst(a) - thoughtFirst(b) })
	return all
}

func thoughtFirst(r agent.Reply) int {
	if _, is := r.(agent.Thought); is {
		return 0
	}
	return 1
}

func says(replies []agent.Reply) (texts []string) {
	for _, r := range replies {
		if say, ok := r.(agent.Say); ok {
			texts = append(texts, say.Text)
		}
	}
	return texts
}

func felt(name string, intensity float64) agent.Felt {
	for _, e := range agent.Emotions() {
		if e.Name == name {
			return agent.Felt{Emotion: e, Intensity: intensity}
		}
	}
	panic(name)
}

// tagged returns a face with the tag that the model wrote.
func tagged(name string, intensity float64, tag string) agent.Felt {
	f := felt(name, intensity)
	f.Tag = tag
	return f
}

// assumed returns the face of a message that begins without a face.
func assumed() agent.Felt {
	return agent.Felt{Emotion: agent.Neutral, Intensity: 1, Assumed: true}
}

func TestFaces(t *testing.T) {
	for text, want := range map[string]agent.Felt{
		"😊 Hi.":             felt("happy", 1),
		"  \n😢Hi.":          felt("sad", 1),
		"**😆** Hi.":         felt("laughing", 1),
		"❤️ Hi.":            felt("loving", 1),
		"😱 Hi.":             felt("shocked", 1),
		"😂 Hi.":             felt("funny", 1),
		"🙂 Hi.":             felt("happy", 1),
		"🎉 Hi.":             assumed(),
		"🎉😠 Hi.":            felt("angry", 1),
		"Hi.":               assumed(),
		"Hi. 😊":             assumed(),
		"[happy] Hi.":       tagged("happy", 1, "happy"),
		"[Excited:0.8] Hi.": tagged("laughing", 0.8, "Excited"),
		"[face:Joy]Hi.":     tagged("happy", 1, "Joy"),
		"[face:Odd]Hi.":     tagged("neutral", 1, "Odd"),
		"[face:a b]Hi.":     felt("neutral", 1),
		"[sad:7] Hi.":       tagged("sad", 1, "sad"),
		"[sad:NaN] Hi.":     tagged("sad", 1, "sad"),
		"[sad:-1] Hi.":      tagged("neutral", 1, "sad"),
		"[whisper] Hi.":     tagged("neutral", 1, "whisper"),
		"- 😴 Hi.":           felt("sleepy", 1),
	} {
		if got := spoken("en", text); len(got) != 2 || got[0] != want || got[1] != (agent.Say{Text: "Hi."}) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestAllFacesAreKept checks that Speech returns every face of agent.Emotions. The prompt offers fewer; the
// robot or program that shows the face chooses one that it has.
func TestAllFacesAreKept(t *testing.T) {
	for _, e := range agent.Emotions() {
		for text, want := range map[string]agent.Felt{e.Emoji + " Hi.": felt(e.Name, 1), "[" + e.Name + "] Hi.": tagged(e.Name, 1, e.Name)} {
			if f := spoken("en", text)[0]; f != want {
				t.Errorf("%q: %+v", text, f)
			}
		}
	}
}

// TestAnUnknownFace checks that an unknown tag at the beginning of a later message keeps the current face, with
// the new tag.
func TestAnUnknownFace(t *testing.T) {
	s := thinker.NewSpeech("en")
	all := append(s.Write("[sad:0.5] One."), s.Flush()...)
	all = append(append(all, s.Write("[tsundere] Two.")...), s.Flush()...)
	want := []agent.Reply{tagged("sad", 0.5, "sad"), agent.Say{Text: "One."}, tagged("sad", 0.5, "tsundere"), agent.Say{Text: "Two."}}
	if !slices.Equal(all, want) {
		t.Errorf("%+v", all)
	}
}

func TestTextThatIsNotSpoken(t *testing.T) {
	for text, want := range map[string][]agent.Reply{
		"Nice. [REMEMBER: the cat is called Tom] Bye.": {agent.Say{Text: "Nice."}, agent.Note{Text: "the cat is called Tom"},
			agent.Say{Text: "Bye."}},
		"Nice![remember:a\n b]":                        {agent.Note{Text: "a b"}, agent.Say{Text: "Nice!"}},
		"[REMEMBER: " + strings.Repeat("x", 301) + "]": nil,
		"Well [REMEMBER: never clos":                   {agent.Say{Text: "Well"}},
		"Well [REMEM":                                  {agent.Say{Text: "Well"}},
		"Hi [anim:wave][pause:1.5] you.": {agent.Cue{Kind: "anim", Value: "wave"},
			agent.Cue{Kind: "pause", Value: "1.5"}, agent.Say{Text: "Hi you."}},
		"I am [sad] not.":                                    {tagged("sad", 1, "sad"), agent.Say{Text: "I am not."}},
		"Nice 🎉👨‍👩‍👧 day ☀️!":                                {agent.Say{Text: "Nice day!"}},
		"Some **bold**, *slanted*, _low_ and `code`.":        {agent.Say{Text: "Some bold, slanted, low and code."}},
		"Call set_head_angles, 2 * 3 or 2*3 ~5 ~~not~~ \\*.": {agent.Say{Text: "Call set head angles, 2 * 3 or 2*3 ~5 not *."}},
		"# Title\n\nText":                                    {agent.Say{Text: "Title"}, agent.Say{Text: "Text"}},
		"- one\n* two\n+ three\n• four\n1. five\n- [x] six": {agent.Say{Text: "one"}, agent.Say{Text: "two"}, agent.Say{Text: "three"},
			agent.Say{Text: "four"}, agent.Say{Text: "1. five"}, agent.Say{Text: "six"}},
		"> Quoted\n> text\n---\n***\n===\n-5 degrees":              {agent.Say{Text: "Quoted"}, agent.Say{Text: "text"}, agent.Say{Text: "-5 degrees"}},
		"See [the page](https://a.b/c_(d)?e=f) now.":               {agent.Say{Text: "See the page now."}},
		"A ![picture](x.png) here.":                                {agent.Say{Text: "A picture here."}},
		"Look at https://example.com/a.b?c=d. Then go.":            {agent.Say{Text: "Look at."}, agent.Say{Text: "Then go."}},
		"It (http://x.y) is at www.example.com, you know":          {agent.Say{Text: "It is at, you know"}},
		"Before.\n```go\nfmt.Println(\"x\") // [sad]\n```\nAfter.": {agent.Say{Text: "Before."}, agent.Say{Text: "After."}},
		"```x``` is a letter.":                                     {agent.Say{Text: "is a letter."}},
		"~~~\ncode\n~~~\nAfter.":                                   {agent.Say{Text: "After."}},
		"```\nnever closed":                                        nil,
		"| Day | Sky |\n|---|:-:|\n| Mon | sun |":                  {agent.Say{Text: "Day, Sky"}, agent.Say{Text: "Mon, sun"}},
		"a | b\n--- | ---\n1 | 2":                                  {agent.Say{Text: "a, b"}, agent.Say{Text: "1, 2"}},
		"One<br>two <b>three</b> 1 < 2 <3":                         {agent.Say{Text: "One two three 1 < 2 <3"}},
		"As said [1], it is [so].":                                 {agent.Say{Text: "As said, it is [so]."}},
		"... - ! 🎉":                                                nil,
	} {
		got := spoken("en", text)
		got = slices.DeleteFunc(got, func(r agent.Reply) bool { return r == assumed() })
		if len(got) == 0 {
			got = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q\n got %q\nwant %q", text, got, want)
		}
	}
}

func TestWhereSentencesAreCut(t *testing.T) {
	for _, c := range []struct {
		language, text string
		want           []string
	}{
		{"en", "It is 3.14. Or 2.7! Is it? yes", []string{"It is 3.14.", "Or 2.7!", "Is it?", "yes"}},
		{"en", "Ask Dr. Who, e.g. now, i.e. at 5 p.m. today. Then go.", []string{"Ask Dr. Who, e.g. now, i.e. at 5 p.m. today.", "Then go."}},
		{"en", "Be here at 5 p.m. Then go.", []string{"Be here at 5 p.m.", "Then go."}},
		{"en", "Well... I see. J. R. R. Tolkien of the U.S. Army.", []string{"Well... I see.", "J. R. R. Tolkien of the U.S. Army."}},
		{"en", "No. I will not. No. 5 is it. So am I. Good.", []string{"No.", "I will not.", "No. 5 is it.", "So am I.", "Good."}},
		{"en", "In 1990. In May the 3. Next.", []string{"In 1990.", "In May the 3.", "Next."}},
		{"en", "\"Yes.\" \"No!\" (Maybe.) Pens, ink, etc. Then apples etc. are here.",
			[]string{"\"Yes.\"", "\"No!\"", "(Maybe.)", "Pens, ink, etc.", "Then apples etc. are here."}},
		{"de-DE", "Am 3. Mai, z. B. um 5, d.h. bald. Gut. Dr. Müller kam 1990. Na?",
			[]string{"Am 3. Mai, z. B. um 5, d.h. bald.", "Gut.", "Dr. Müller kam 1990.", "Na?"}},
		{"de", "Das kostet 3,50 Euro. Usw. Genug „Ja.“ Nein.", []string{"Das kostet 3,50 Euro.", "Usw.", "Genug „Ja.“", "Nein."}},
		{"ja", "こんにちは。「はい。」元気ですか？！はい", []string{"こんにちは。", "「はい。」", "元気ですか？！", "はい"}},
		{"zh", "你好！再见。圆周率是3.14。好的!走吧", []string{"你好！", "再见。", "圆周率是3.14。", "好的!", "走吧"}},
		{"xx", "Dr. Who z.B. hier. Ja.", []string{"Dr. Who z.B. hier.", "Ja."}},
	} {
		if got := says(spoken(c.language, c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%s %q\n got %q\nwant %q", c.language, c.text, got, c.want)
		}
	}
}

func TestTheFirstSentenceBeginsEarly(t *testing.T) {
	const long = "Well, that is a question which many people ask me, and I am always glad to answer it, because I like it. " +
		"The second one is long as well, and it goes on for quite a while, but it stays whole."
	s := thinker.NewSpeech("en")
	var first string
	for i, r := range long {
		if got := says(s.Write(string(r))); len(got) > 0 {
			if first = got[0]; i > len(first) { // the sentence is returned at the space after its comma
				t.Errorf("the first came after %d letters", i)
			}
			break
		}
	}
	if first != "Well, that is a question which many people ask me," {
		t.Errorf("first %q", first)
	}
	want := []string{first, "and I am always glad to answer it, because I like it.",
		"The second one is long as well, and it goes on for quite a while, but it stays whole."}
	if got := says(spoken("en", long)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := says(spoken("zh", strings.Repeat("我", 15)+"，"+strings.Repeat("你", 15)+"。")); len(got) != 2 {
		t.Errorf("in Chinese: %q", got)
	}
}

func TestAMessageAfterATool(t *testing.T) {
	s := thinker.NewSpeech("en")
	got := append(s.Write("😊 Let me look."), s.Flush()...)
	got = append(append(got, s.Write("It is late.")...), s.Flush()...)
	got = append(append(got, s.Write("😢 And dark.")...), s.Flush()...)
	want := []agent.Reply{felt("happy", 1), agent.Say{Text: "Let me look."}, agent.Say{Text: "It is late."}, felt("sad", 1),
		agent.Say{Text: "And dark."}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// pieces are the parts of random texts.
var pieces = []string{"Hello", " ", " ", ". ", ".", "! ", "? ", ", ", "\n", "\n\n", "3.14", "Dr.", "z. B. ", "...", "e.g. ", "😊", "😢", "❤️", "👨‍👩‍👧",
	"[happy]", "[excited:0.8]", "[REMEMBER: the cat]", "[REMEMBER: ", "]", "[", "(", ")", "**", "*", "_", "`", "```", "~~", "# ", "> ", "- ", "|",
	"|---|",
	"[a](http://b)", "https://x.y/z.", "www.", "h", "<br>", "<", "\\", "!", "こんにちは。", "「", "」", "你好！", "，", "äöü", "\xf0", "\x00", "[anim:wave]",
	"a word and another word and yet another one", strings.Repeat("x", 130)}

func TestSpeechDoesNotDependOnSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "text"), "")
		language := rapid.SampledFrom([]string{"en", "de", "ja", ""}).Draw(t, "language")
		whole := spoken(language, text)
		var deltas []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			deltas, rest = append(deltas, rest[:n]), rest[n:]
		}
		if got := spoken(language, deltas...); !reflect.DeepEqual(got, whole) {
			t.Fatalf("%q\n%q\n%q", deltas, got, whole)
		}
		checkSpeech(t, text, whole)
	})
}

// checkSpeech checks properties that the replies to every text must have.
func checkSpeech(t interface{ Fatalf(string, ...any) }, text string, replies []agent.Reply) {
	faced := false
	for _, r := range replies {
		switch r := r.(type) {
		case agent.Felt:
			faced = true
			if !slices.Contains(agent.Emotions(), r.Emotion) || !(r.Intensity > 0 && r.Intensity <= 1) || len(r.Tag) > 64 ||
				strings.ContainsAny(r.Tag, "[]:<> ") {
				t.Fatalf("%q: %+v", text, r)
			}
		case agent.Say:
			if !faced || r.Text == "" || len(r.Text) > 300 || !utf8.ValidString(r.Text) || strings.TrimSpace(r.Text) != r.Text {
				t.Fatalf("%q: %q, a face before it: %t", text, r.Text, faced)
			}
			marked := strings.Contains(strings.ToUpper(text), "[REMEMBER:") && strings.Contains(strings.ToUpper(r.Text), "[REMEMBER:")
			if strings.ContainsAny(r.Text, "😊😢\n`") || marked {
				t.Fatalf("%q: %q", text, r.Text)
			}
		case agent.Note:
			if r.Text == "" || len(r.Text) > 300 {
				t.Fatalf("%q: %q", text, r.Text)
			}
		}
	}
}

func FuzzSpeech(f *testing.F) {
	for _, p := range pieces {
		f.Add("en", p+"Hi. "+p, 3)
	}
	f.Fuzz(func(t *testing.T, language, text string, at int) {
		at = min(max(at, 0), len(text))
		whole := spoken(language, text)
		if got := spoken(language, text[:at], text[at:]); !reflect.DeepEqual(got, whole) {
			t.Fatalf("split at %d: %q, whole: %q", at, got, whole)
		}
		checkSpeech(t, text, whole)
		for _, s := range thinker.Sentences(text) {
			if len(s) > 300 || s == "" {
				t.Fatalf("%q: %q", text, s)
			}
		}
	})
}

// TestSentencesComeOutAtOnce checks that Write returns a sentence as soon as the space after it has been
// written, also if the sentence has markup.
func TestSentencesComeOutAtOnce(t *testing.T) {
	for _, sentence := range []string{"One **two** [sic] three.", "See [it](http://x.y/z).", "A <b>word</b>!", "[happy] What | is_it?",
		"[REMEMBER: x]Good."} {
		s := thinker.NewSpeech("en")
		s.Write(sentence)
		if got := says(s.Write(" ")); len(got) != 1 {
			t.Errorf("%q: %q", sentence, got)
		}
	}
}

// TestThoughts checks that each paragraph of a thought becomes a reply, for all forms of thoughts and also if the
// text is written letter by letter.
func TestThoughts(t *testing.T) {
	thoughts := func(replies []agent.Reply) (all []string) {
		for _, r := range replies {
			if thought, is := r.(agent.Thought); is {
				all = append(all, thought.Text)
			}
		}
		return all
	}
	for text, want := range map[string][]string{
		"<think>Well.\n\nIt is 3 < 4.\n</think>Hello.":                                                {"Well.", "It is 3 < 4."},
		"Hello. <think>One.</think><think>Two.</think>":                                               {"One.", "Two."},
		"analysisWe greet.assistantfinalHello.":                                                       {"We greet."},
		"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.": {"Hm."},
		"Hello.<|im_end|><|im_start|>user<|im_sep|>And you?":                                          nil, // a message that the model has invented
		"<think>" + strings.Repeat("é", 1500) + "</think>Hello.":                                      {strings.Repeat("é", 1000), strings.Repeat("é", 500)},
	} {
		for _, size := range []int{len(text), 1} {
			var deltas []string
			for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
				deltas = append(deltas, rest[:min(size, len(rest))])
			}
			if got := thoughts(spoken("en", deltas...)); !slices.Equal(got, want) {
				t.Errorf("%q in pieces of %d: %q, want %q", text, size, got, want)
			}
		}
	}
	s := thinker.NewSpeech("en")
	got := slices.Concat(s.Think("It is "), s.Think("late.\n\nAnd"), s.Write("Hello."), s.Flush())
	if all := thoughts(got); !slices.Equal(all, []string{"It is late.", "And"}) || len(says(got)) != 1 {
		t.Errorf("apart from the text: %q", got)
	}
	endless := thinker.NewSpeech("en")
	if n := len(endless.Think(strings.Repeat("On and on.\n\n", 1000))); n != 50 {
		t.Errorf("%d thoughts of one turn", n)
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           nil,
		"One.":                       {"One."},
		"One. Two! Three? four":      {"One.", "Two!", "Three?", "four"},
		"It is 3.14 now.\nNext line": {"It is 3.14 now.", "Next line"},
		"你好。再见！":                     {"你好。", "再见！"},
	} {
		if got := thinker.Sentences(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	long := thinker.Sentences(strings.Repeat("word ", 200))
	if len(long) < 3 || slices.ContainsFunc(long, func(s string) bool { return len(s) > 300 }) {
		t.Errorf("a long sentence was cut into %d", len(long))
	}
}

// TestCleanUp checks that formulas, citations, entities, addresses and stage directions in a model's text are removed
// or become words.
func TestCleanUp(t *testing.T) {
	for text, want := range map[string]string{
		`It is \(E = mc^2\), as you know.`:               "It is E = mc², as you know.",
		`So $x_1$ is large.`:                             "So x 1 is large.",
		`It costs $5 or $10.`:                            "It costs 5 dollars or 10 dollars.",
		`The sum is \[ \frac{1}{2} \times 4 \] exactly.`: "The sum is 1 / 2 × 4 exactly.",
		"See the page【4†source】.":                        "See the page.",
		"【注意】 これは大事です。":                                  "【注意】 これは大事です。",
		`The &quot;docs&quot; &amp; more&nbsp;here.`:     `The "docs" & more here.`,
		"Fish & chips; R&D.":                             "Fish & chips; R&D.",
		"It is small (<https://a.example/b>).":           "It is small.",
		"*waves happily* Hello there.":                   "Hello there.",
		"Hello there. *waves happily*":                   "Hello there.",
		"I *really* mean it.":                            "I really mean it.",
		"*really* nice.":                                 "really nice.",
		"(smiles) Hello there.":                          "Hello there.",
		"Hello there. (smiles)":                          "Hello there.",
		"It is far (about 5 km).":                        "It is far (about 5 kilometres).",
		"Hello there. [laughs] It is late.":              "Hello there. It is late.",
		"Hello there.<|im_end|>":                         "Hello there.",
		"<think>Hm.</think>Hello there.":                 "Hello there.",
	} {
		for _, size := range []int{len(text), 1} {
			s := thinker.NewSpeech("en")
			var all []agent.Reply
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				all = append(all, s.Write(rest[:n])...)
				rest = rest[n:]
			}
			all = append(all, s.Flush()...)
			if got := strings.Join(says(all), " "); got != want {
				t.Errorf("%q is spoken as %q, want %q", text, got, want)
				break
			}
		}
	}
	s := thinker.NewSpeech("de")
	all := append(s.Write("Am 3. Okt. um 14:30 Uhr. Danach nicht."), s.Flush()...)
	if got := says(all); !slices.Equal(got, []string{"Am 3. Okt. um 14:30 Uhr.", "Danach nicht."}) {
		t.Errorf("in German %q", got)
	}
}
