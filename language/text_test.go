package language_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"perch/language"
)

// TestSplit splits texts in several scripts, with and without spaces between words.
func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"What's  up, DOC?":        "what's up doc",
		"‘tis 'quoted' l’heure":   "tis quoted l'heure",
		"¿Qué hora es, señor?":    "qué hora es señor",
		"Que\u0301 Ma\u0308r":     "qué mär", // letters followed by combining accents
		"vingt-et-un STRASSE ẞ":   "vingt et un strasse ß",
		"音量を４０％にして。":              "音 量 を 40 に し て",
		"ｺｰﾋｰ　珈琲":                 "コ ー ヒ ー 珈 琲",
		"3時15分 LEDを":              "3 時 15 分 led を",
		"把 音量 调到 40%":             "把 音 量 调 到 40",
		"〇々〆ー":                    "〇 々 〆 ー",
		"٤٠ ४० 40km":              "40 40 40 km",
		"สวัสดี":                  "ส วั ส ดี",
		"می\u200cخواهم \u200fabc": "میخواهم abc",
		"안녕하세요 로봇":                "안녕하세요 로봇",
		"Ёлка ΣΊΣΥΦΟΣ":            "ёлка σίσυφοσ",
		"❤️ 😊 … \u0301":           "",
		"":                        "",
	} {
		if got := strings.Join(language.Split(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzSplit checks that words are folded, and that splitting the words again changes nothing.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"What's up", "音量を４０％に", "สวัสดี", "ﷺ", "İ ẞ ﬁ", "\xff\u0301'40", "½①㎏"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := language.Split(text)
		again := language.Split(strings.Join(words, " "))
		if !slices.Equal(words, again) && utf8.ValidString(text) {
			t.Fatalf("%q: %q, and again %q", text, words, again)
		}
		if slices.Contains(words, "") {
			t.Fatalf("%q: %q", text, words)
		}
	})
}
