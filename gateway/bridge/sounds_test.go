package bridge

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestBaseName(t *testing.T) {
	for asset, want := range map[string]string{
		"purr": "purr", "Happy Birthday.wav": "Happy Birthday.wav", "/data/sounds/x.wav": "x.wav", "/usr/share/perch/sounds/x.wav": "",
		"/data/sounds//x.wav": "x.wav", "/data/sounds/./x.wav": "x.wav", "./x.wav": "x.wav", "/data/sounds/y/../x.wav": "x.wav",
		"": "", ".": "", "..": "", "/": "", ".hidden": "", "/data/sounds": "", "/data/sounds/": "", "/data/sounds/.hidden": "", "/data/sounds/..": "",
		"/data/soundsx/x.wav": "", "/data/x.wav": "", "../x.wav": "", "/data/sounds/../x.wav": "", "/data/sounds/y/x.wav": "", "y/x.wav": "",
		"/etc/passwd": "", `..\x.wav`: "", "x.wav\x00": "", strings.Repeat("x", maxAsset+1): "",
	} {
		got, err := baseName(asset, "/data/sounds")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%.60q is %q, %v", asset, got, err)
		}
	}
}

// FuzzAsset tests that each accepted asset is a single name of a file directly in the root.
func FuzzAsset(f *testing.F) {
	for _, asset := range []string{"purr", "/data/sounds/x.wav", "/data/sounds/../x", "a/../../b", "//data//sounds//x", "...", "\x00"} {
		f.Add(asset)
	}
	f.Fuzz(func(t *testing.T, asset string) {
		name, err := baseName(asset, "/data/sounds")
		if err == nil && (name == "" || strings.ContainsAny(name, "/\\\x00") || strings.HasPrefix(name, ".") ||
			filepath.Join("/data/sounds", name) != "/data/sounds/"+name) {
			t.Fatalf("%q is %q", asset, name)
		}
	})
}
