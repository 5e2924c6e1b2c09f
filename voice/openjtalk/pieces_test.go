package openjtalk

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPieces(t *testing.T) {
	long := strings.Repeat("長", 60)
	for text, want := range map[string][]string{
		"":         nil,
		" 。！\n":    nil,
		"はい。":      {"はい。"},
		"はい。三時です。": {"はい。三時です。"},
		"今日はよい天気ですね！！散歩に行きますか？はい。":  {"今日はよい天気ですね！！", "散歩に行きますか？", "はい。"},
		"「今日はよい天気です。」と言いました。":       {"「今日はよい天気です。」と言いました。"},
		"3.5度です\r\n明日は雨が降るでしょう":     {"3.5度です 。", "明日は雨が降るでしょう"},
		"一つ目の文はこれです\x00\x1b\n\n二つ目": {"一つ目の文はこれです。。", "二つ目"},
		long + "、" + long + "。":     {long + "、", long + "。"},
		long + long:                 {long + strings.Repeat("長", 40), strings.Repeat("長", 20)},
	} {
		if got := slices.Collect(pieces(text)); !slices.Equal(got, want) {
			t.Errorf("%q\ngives %q\nnot   %q", text, got, want)
		}
	}
}

// FuzzPieces checks that each piece of any text is a single line that fits the program's buffer, and
// that no letter is lost.
func FuzzPieces(f *testing.F) {
	for _, s := range []string{"", "はい。", strings.Repeat("a", 1000), "\x00\n\xff東京\u2028大阪", strings.Repeat("ﾊﾞ", 300),
		"。。。。。。。。。", "𠮷野家で。" + strings.Repeat("、", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		letters := func(s string) (n int) {
			for _, r := range strings.ToValidUTF8(s, "") {
				if unicode.IsLetter(r) || unicode.IsNumber(r) {
					n++
				}
			}
			return n
		}
		count := 0
		for piece := range pieces(text) {
			if strings.ContainsFunc(piece, unicode.IsControl) || !utf8.ValidString(piece) || utf8.RuneCountInString(piece) > maxPiece {
				t.Fatalf("%q", piece)
			}
			count += letters(piece)
		}
		if count != letters(text) {
			t.Errorf("%d letters of %d in %q", count, letters(text), text)
		}
	})
}
