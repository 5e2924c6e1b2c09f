package models

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perch/must"
)

// write writes a file into the folder of a model.
func write(t *testing.T, folder Folder, model, name, text string) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Join(string(folder), model), 0o755))
	must.Succeed(t, os.WriteFile(filepath.Join(string(folder), model, name), []byte(text), 0o644))
}

const voiceSettings = `{"audio":{"sample_rate":16000},"espeak":{"voice":"de"},"inference":{"noise_scale":0.6,"length_scale":1,"noise_w":0.8},
	"num_speakers":1,"language":{"code":"de_DE"},"phoneme_id_map":{"_":[0],"a":[14]," ":[3]}}`

func TestListFindsModelsThatWerePutThere(t *testing.T) {
	folder := Folder(filepath.Join(t.TempDir(), "models"))
	if list, err := folder.List(); err != nil || len(list) > 0 {
		t.Fatalf("without a folder: %v, %v", list, err)
	}
	write(t, folder, "anna", "de_DE-anna-low.onnx", "weights")
	write(t, folder, "anna", "de_DE-anna-low.onnx.json", voiceSettings)
	write(t, folder, "detector", "silero_vad.onnx", "weights")
	write(t, folder, "ends", "smart-turn-v3.2-cpu.onnx", "weights")
	write(t, folder, "half", "de_DE-half-low.onnx.json", voiceSettings)
	write(t, folder, "en_US-joe-medium", "en_US-joe-medium.onnx", "shorter than in the catalogue")
	write(t, folder, "en_US-joe-medium", "en_US-joe-medium.onnx.json", voiceSettings)
	for _, name := range []string{"encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin"} {
		write(t, folder, "moonshine-base-ja", name, "")
	}
	var got []string
	list := must.Value(folder.List())(t)
	for _, m := range list {
		got = append(got, m.Name+" "+m.Job+" "+m.Language)
	}
	if want := "[anna speaks de-DE detector detects  ends judges  moonshine-base-ja hears ja]"; fmt.Sprint(got) != want {
		t.Errorf("found %v, want %s", got, want)
	}
}

func TestVoiceIsPreparedOnce(t *testing.T) {
	folder := Folder(t.TempDir())
	write(t, folder, "anna", "de_DE-anna-low.onnx", "weights")
	write(t, folder, "anna", "de_DE-anna-low.onnx.json", voiceSettings)
	var before []byte
	for range 2 {
		v, err := must.Value(folder.List())(t)[0].Voice()
		must.Succeed(t, err)
		model := must.Value(os.ReadFile(v.Model))(t)
		if before == nil {
			before = model
		}
		// Field 14 of the model has the fields 1 and 2: a key and its value.
		if !bytes.HasPrefix(model, []byte("weights\x72\x12\x0a\x0amodel_type\x12\x04vits\x72")) || !bytes.Equal(model, before) {
			t.Errorf("the model is %q, before %q", model, before)
		}
		if tokens := must.Value(os.ReadFile(v.Tokens))(t); string(tokens) != "  3\n_ 0\na 14\n" || v.Rate != 16000 {
			t.Errorf("the tokens are %q, the rate %d", tokens, v.Rate)
		}
	}
}

func TestMoonshineTokens(t *testing.T) {
	long := strings.Repeat("x", 300)
	got, err := moonshineTokens([]byte("\x05<unk>\x00\x01a\xac\x02" + long))
	if err != nil || !strings.HasPrefix(string(got), "PHVuaz4= 0\n 1\nYQ== 2\neHh4") || !strings.HasSuffix(string(got), " 3\n") {
		t.Errorf("the tokens are %.60q (%v)", got, err)
	}
	if _, err := moonshineTokens([]byte("\x05abc")); err == nil {
		t.Error("a symbol beyond the end is read")
	}
}

func TestUnreadableSettings(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "<html>", "no rate": `{"espeak":{"voice":"de"},"phoneme_id_map":{"a":[1]}}`,
		"other phonemes": strings.Replace(voiceSettings, `{"audio"`, `{"phoneme_type":"text","audio"`, 1), "too long": strings.Repeat(" ", maxSettings+1)} {
		folder := Folder(t.TempDir())
		write(t, folder, "anna", "de_DE-anna-low.onnx", "weights")
		write(t, folder, "anna", "de_DE-anna-low.onnx.json", text)
		if _, err := must.Value(folder.List())(t)[0].Voice(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRemove(t *testing.T) {
	root := t.TempDir()
	folder := Folder(filepath.Join(root, "models"))
	write(t, folder, "anna", "de_DE-anna-low.onnx", "weights")
	write(t, folder, "anna", "de_DE-anna-low.onnx.json", voiceSettings)
	write(t, Folder(root), "other", "x.onnx", "")
	write(t, Folder(root), "other", "x.onnx.json", voiceSettings)
	for _, name := range []string{"../other", "", ".", "none"} {
		if err := folder.Remove(name); err == nil {
			t.Errorf("%q was removed", name)
		}
	}
	must.Succeed(t, folder.Remove("anna"))
	if list := must.Value(folder.List())(t); len(list) > 0 || !exists(filepath.Join(root, "other"), "x.onnx") {
		t.Errorf("left: %v", list)
	}
}

// TestPackagedModels checks that models of Debian packages are listed, but are neither downloaded again nor removed.
func TestPackagedModels(t *testing.T) {
	own, packaged := Folder(t.TempDir()), Folder(t.TempDir())
	both := own + ":" + packaged
	for folder, name := range map[Folder]string{packaged: "anna", own: "bob"} {
		write(t, folder, name, "de_DE-"+name+"-low.onnx", "weights")
		write(t, folder, name, "de_DE-"+name+"-low.onnx.json", voiceSettings)
	}
	if list := must.Value(both.List())(t); len(list) != 2 || list[0].Name != "anna" || list[1].Name != "bob" {
		t.Errorf("listed: %v", list)
	}
	if err := both.Remove("anna"); err == nil || !strings.Contains(err.Error(), "apt remove") {
		t.Errorf("a model of a package is removed: %v", err)
	}
	must.Succeed(t, both.Remove("bob"))
	must.Succeed(t, getter(both).Get(t.Context(), Model{Name: "anna", Files: []File{{Name: "weights", URL: "http://127.0.0.1:1/", Size: 1}}}))
	if !exists(filepath.Join(string(packaged), "anna"), "de_DE-anna-low.onnx") || exists(filepath.Join(string(own), "bob"), "de_DE-bob-low.onnx") {
		t.Error("the models are not where they should be")
	}
	write(t, own, "anna", "de_DE-anna-low.onnx", "other weights")
	write(t, own, "anna", "de_DE-anna-low.onnx.json", voiceSettings)
	if list := must.Value(both.List())(t); len(list) != 1 || both.isPackaged(list[0]) {
		t.Errorf("the owner's model does not come first: %v", list)
	}
}

// TestCatalogue checks that names can be names of folders, that URLs contain a version, and that sums and sizes are
// set.
func TestCatalogue(t *testing.T) {
	name, pinned := regexp.MustCompile(`^[A-Za-z0-9_.-]+$`), regexp.MustCompile(`^https://[^/]+/.*/(v\d[^/]*|[0-9a-f]{40})/`)
	for _, m := range Catalogue() {
		for _, f := range m.Files {
			if !name.MatchString(m.Name+f.Name) || !pinned.MatchString(f.URL) || len(f.SHA256) != 64 || f.Size <= 0 || m.Licence == "" {
				t.Errorf("%s: %+v", m.Name, f)
			}
		}
	}
}
