package espimage_test

import (
	"bytes"
	"strings"
	"testing"

	"perch/must"
	"perch/ota/espimage"
	"perch/ota/espimage/espimagetest"
)

const goodIndex = `{"version":1,"text_font":"font.bin","srmodels":"srmodels.bin","emoji_collection":[{"name":"happy","file":"happy.png"}],` +
	`"skin":{"light":{"text_color":"#000","background_image":"sky.bin"}}}`

func goodFiles() []string {
	return []string{"index.json", goodIndex, "font.bin", "a font", "srmodels.bin", "", "happy.png", "\x89PNG",
		"sky.bin", strings.Repeat("s", 70000)}
}

func TestAssets(t *testing.T) {
	good := espimagetest.Assets(goodFiles()...)
	for _, whole := range [][]byte{good, append(bytes.Clone(good), 0xFF, 0xFF)} {
		a, err := espimage.ReadAssets(bytes.NewReader(whole), int64(len(whole)))
		if err != nil || len(a.Files) != 5 || a.Files[4].Size != 70000 || a.Files[1].Name != "font.bin" {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	least := espimagetest.Assets("index.json", `{}`)
	must.Value(espimage.ReadAssets(bytes.NewReader(least), int64(len(least))))(t)
}

func TestReadAssetsRefuses(t *testing.T) {
	good := espimagetest.Assets(goodFiles()...)
	damaged := bytes.Clone(good)
	damaged[len(damaged)-1]++
	patched := func(at int, b ...byte) []byte { // returns an asset file with changed bytes and a valid checksum
		whole := bytes.Clone(good)
		copy(whole[at:], b)
		return espimagetest.Sealed(5, whole[12:])
	}
	index := func(text string) []byte { return espimagetest.Assets("index.json", text) }
	for name, c := range map[string]struct {
		file []byte
		word string
	}{
		"empty":                 {nil, espimage.NotAssets},
		"a page":                {[]byte(strings.Repeat("<html>", 100)), espimage.NotAssets},
		"too many files":        {espimagetest.Sealed(5000, make([]byte, 5000*44)), espimage.NotAssets},
		"no files":              {espimagetest.Sealed(0, make([]byte, 100)), espimage.NotAssets},
		"cut short":             {good[:len(good)-1], espimage.Truncated},
		"cut in its table":      {good[:100], espimage.Truncated},
		"damaged":               {damaged, espimage.BadChecksum},
		"a name without an end": {patched(12, bytes.Repeat([]byte("n"), 32)...), espimage.BadTable},
		"no name":               {patched(12, 0), espimage.BadTable},
		"a name with an escape": {patched(12, 0x1B), espimage.BadTable},
		"beyond the end":        {patched(12+32, 0xFF, 0xFF, 0xFF, 0xFF), espimage.BadTable},
		"begins beyond the end": {patched(12+36, 0xFF, 0xFF, 0xFF, 0xFF), espimage.BadTable},
		"one byte beyond":       {patched(12+4*44+32, 0x71, 0x11, 0x01, 0), espimage.BadTable},
		"not marked":            {patched(12+5*44, 'Y'), espimage.BadTable},
		"twice":                 {espimagetest.Assets("index.json", "{}", "index.json", "{}"), espimage.BadTable},
		"no index":              {espimagetest.Assets("font.bin", "a font"), espimage.BadIndex},
		"index is a list":       {index("[]"), espimage.BadIndex},
		"index is null":         {index("null"), espimage.BadIndex},
		"index is long":         {index(`{"a":"` + strings.Repeat("x", 256<<10) + `"}`), espimage.BadIndex},
		"a version to come":     {index(`{"version":2}`), espimage.BadIndex},
		"no font":               {index(`{"text_font":"font.bin"}`), espimage.MissingFile},
		"no wake words":         {index(`{"srmodels":"srmodels.bin"}`), espimage.MissingFile},
		"no face":               {index(`{"emoji_collection":[{"name":"happy","file":"happy.png"}]}`), espimage.MissingFile},
		"no sky":                {index(`{"skin":{"dark":{"background_image":"\u001b[2J"}}}`), espimage.MissingFile},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := espimage.ReadAssets(bytes.NewReader(c.file), int64(len(c.file)))
			if word := refused(t, name, err); word != c.word {
				t.Errorf("%v, want %s", err, c.word)
			}
		})
	}
	if _, err := espimage.ReadAssets(bytes.NewReader(good), 17<<20); err == nil {
		t.Error("one of 17 MB is taken")
	}
}

// FuzzAssets reads arbitrary files. The files in a valid asset file must lie within it.
func FuzzAssets(f *testing.F) {
	f.Add(espimagetest.Assets("index.json", goodIndex))
	f.Add(espimagetest.Assets(goodFiles()[:4]...))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, whole := range [][]byte{text, espimagetest.Sealed(len(text)%7, text)} {
			a, err := espimage.ReadAssets(bytes.NewReader(whole), int64(len(whole)))
			if err != nil {
				continue
			}
			for _, file := range a.Files {
				if file.Size > int64(len(whole)) || file.Name == "" {
					t.Fatalf("%+v of %d bytes", file, len(whole))
				}
			}
		}
	})
}
