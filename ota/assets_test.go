package ota_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/ota/espimage/espimagetest"
)

// statusOf returns the status and the code of an error, or its text if it has neither.
func statusOf(err error) string {
	if f, is := errors.AsType[coded](err); is {
		return fmt.Sprint(f.Status(), " ", f.Code())
	}
	return fmt.Sprint(err)
}

func TestAssetIsAddedDownloadedAndRemoved(t *testing.T) {
	l := newAppliance(t)
	if list, err := l.Assets(); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
	file := espimagetest.Font(100_000)
	a, err := l.AddAsset(t.Context(), "font-de.bin", bytes.NewReader(file))
	if err != nil || a.Size != int64(len(file)) || len(a.Files) != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	path := must.Value(l.AssetFor("a0b1c2d3e4f5", "font-de.bin", time.Now()))(t)
	w := l.fetch(offer{URL: path})
	if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), file) || w.Header().Get("Content-Length") != fmt.Sprint(len(file)) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	other := must.Value(l.AssetFor("a0b1c2d3e4f5", "font-de.bin", time.Now().Add(-25*time.Hour)))(t)
	l.add(t, simrobot.Image("1.3.0", 0), board)
	image := must.Value(func() (string, error) { l.runs(t, mac, "1.2.4"); return l.Install("a0b1c2d3e4f5", "", time.Now()) }())(t)
	must.Value(l.AddAsset(t.Context(), "other.bin", bytes.NewReader(file)))(t)
	ticket := path[strings.Index(path, "?"):]
	for url, code := range map[string]int{
		other:                                    403, // yesterday's
		strings.TrimSuffix(path, ticket):         403,
		"/xiaozhi/ota/assets/other.bin" + ticket: 403, // another file's
		"/xiaozhi/ota/assets/font-de.bin" + image[strings.Index(image, "?"):]: 403, // an image's
		strings.Replace(path, "a0b1c2d3e4f5", "a0b1c2d3e4f6", 1):              403, // another robot's
		"/xiaozhi/ota/assets/..%2f..%2fperch.db" + ticket:                     404, // out of the folder
		"/xiaozhi/ota/assets/.upload-1" + ticket:                              404, // hidden
	} {
		if w := l.fetch(offer{URL: url}); w.Code != code {
			t.Errorf("%s: %d %s, want %d", url, w.Code, w.Body, code)
		}
	}
	l.open(t) // a restart keeps the files
	if list, err := l.Assets(); err != nil || len(list) != 2 || list[0].Name != "font-de.bin" || list[0].Size != int64(len(file)) {
		t.Errorf("%+v, %v", list, err)
	}
	must.Succeed(t, l.RemoveAsset("font-de.bin"))
	if w := l.fetch(offer{URL: path}); w.Code != http.StatusNotFound {
		t.Errorf("removed: %d", w.Code)
	}
	_, err = l.AssetFor("a0b1c2d3e4f5", "font-de.bin", time.Now())
	if statusOf(err) != "404 unknown_asset" || statusOf(l.RemoveAsset("font-de.bin")) != "404 unknown_asset" {
		t.Errorf("removed: %v", err)
	}
}

// breaks is a body whose connection breaks at its end.
type breaks struct{ io.Reader }

func (b breaks) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestRefusedAssetLeavesNothing(t *testing.T) {
	s := newCatalogue(t)
	good := espimagetest.Font(1000)
	must.Value(s.AddAsset(t.Context(), "a.bin", bytes.NewReader(good)))(t)
	damaged := bytes.Clone(good)
	damaged[len(damaged)-1]++
	for _, c := range []struct {
		name string
		body io.Reader
		want string
	}{
		{"a.bin", bytes.NewReader(damaged), "422 bad_checksum"},
		{"a.bin", bytes.NewReader(good[:500]), "422 truncated"},
		{"a.bin", bytes.NewReader(simrobot.Image("1.3.0", 0)), "422 not_assets"},
		{"a.bin", breaks{bytes.NewReader(good[:500])}, "400 truncated"},
		{"a.bin", io.LimitReader(endless{}, 20<<20), "422 too_large"},
		{"", bytes.NewReader(good), "400 bad_name"},
		{"../a.bin", bytes.NewReader(good), "400 bad_name"},
		{".upload-1", bytes.NewReader(good), "400 bad_name"},
		{strings.Repeat("a", 64), bytes.NewReader(good), "400 bad_name"},
	} {
		if _, err := s.AddAsset(t.Context(), c.name, c.body); statusOf(err) != c.want {
			t.Errorf("%q: %v, want %s", c.name, statusOf(err), c.want)
		}
	}
	if kept, err := os.ReadFile(filepath.Join(s.dir, "assets", "a.bin")); err != nil || !bytes.Equal(kept, good) {
		t.Errorf("the one before is another (%v)", err)
	}
	for n := range 31 {
		must.Value(s.AddAsset(t.Context(), fmt.Sprintf("b%d.bin", n), bytes.NewReader(good)))(t)
	}
	if _, err := s.AddAsset(t.Context(), "c.bin", bytes.NewReader(good)); statusOf(err) != "409 assets_full" {
		t.Errorf("one too many: %v", err)
	}
	if _, err := s.AddAsset(t.Context(), "a.bin", bytes.NewReader(espimagetest.Font(2000))); err != nil {
		t.Errorf("one in the place of another: %v", err)
	}
	left := filepath.Join(s.dir, "assets", ".upload-123") // as a power cut leaves it
	must.Succeed(t, os.WriteFile(left, good[:100], 0o600))
	if list, err := s.Assets(); err != nil || len(list) != 32 {
		t.Errorf("%d, %v", len(list), err)
	}
	s.open(t)
	if files, err := os.ReadDir(filepath.Join(s.dir, "assets")); err != nil || len(files) != 32 {
		t.Errorf("after a restart there are %d files, %v", len(files), err)
	}
}

// endless is a body without an end, which must not fill the disk.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A robot erases its assets before it checks the size of the new ones.
func TestAssetLargerThanPartitionIsNotOffered(t *testing.T) {
	l := newAppliance(t)
	file := espimagetest.Font(100_000)
	must.Value(l.AddAsset(t.Context(), "font.bin", bytes.NewReader(file)))(t)
	for size, want := range map[int]string{len(file): "", len(file) - 1: "too_large"} {
		l.runs(t, mac, "1.2.4", `{"label":"ota_0","type"`, fmt.Sprintf(`{"label":"assets","type":1,"subtype":130,"size":%d},{"label":"ota_0","type"`,
			size))
		if _, err := l.AssetFor("a0b1c2d3e4f5", "font.bin", time.Now()); codeOf(err) != want {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
