package main

import (
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perch/firmware-tools/simrobot"
)

// assetFile returns an asset file with an empty index.
func assetFile() []byte {
	rest := make([]byte, 44, 48)
	copy(rest, "index.json")
	rest[32] = 2
	rest = append(rest, "ZZ{}"...)
	sum := uint32(0)
	for _, b := range rest {
		sum += uint32(b)
	}
	head := binary.LittleEndian.AppendUint32([]byte{1, 0, 0, 0}, sum)
	return append(binary.LittleEndian.AppendUint32(head, uint32(len(rest))), rest...)
}

// assetServer is an appliance that records its requests, and refuses some.
type assetServer struct {
	asked  []string
	refuse string // a request whose path ends so
}

func (s *assetServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.asked = append(s.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
	if s.refuse != "" && strings.HasSuffix(r.URL.Path, s.refuse) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"error":{"code":"robot_offline","message":"its channel is closed"}}`)
	}
}

func TestAssets(t *testing.T) {
	file := writeFile(t, "de.bin", assetFile())
	token := writeFile(t, "token", []byte("secret\n"))
	s := &assetServer{}
	server := httptest.NewServer(s)
	defer server.Close()
	code, out, errs := tools("assets", file, "--check")
	if code != 0 || errs != "" || !strings.Contains(out, "index.json") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
	code, out, errs = tools("assets", file, "--url", server.URL, "--token-file", token)
	if code != 0 || errs != "" || !strings.Contains(out, "no robot fetches it yet: --robot names one whose channel is open") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
	code, out, errs = tools("assets", file, "--url", server.URL, "--name", "fonts.bin", "--robot", "A0:B1:C2:D3:E4:F5", "--reboot")
	if code != 0 || errs != "" || !strings.Contains(out, "a0b1c2d3e4f5 restarts") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
	want := []string{
		"POST /api/v1/assets/de.bin Bearer secret " + string(assetFile()),
		"POST /api/v1/assets/fonts.bin  " + string(assetFile()),
		`POST /api/v1/devices/a0b1c2d3e4f5/assets  {"name":"fonts.bin"}`,
		"POST /api/v1/devices/a0b1c2d3e4f5/reboot  ",
	}
	if !slices.Equal(s.asked, want) {
		t.Errorf("asked %q", s.asked)
	}
	s.refuse = "/devices/a0b1c2d3e4f5/assets"
	code, out, errs = tools("assets", file, "--url", server.URL, "--robot", "a0b1c2d3e4f5", "--reboot")
	if code != 1 || !strings.Contains(errs, "it is uploaded, but a0b1c2d3e4f5 does not fetch it: its channel is closed") ||
		!strings.Contains(out, "robots can download it as de.bin") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
}

func TestAssetsRefused(t *testing.T) {
	good := writeFile(t, "de.bin", assetFile())
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{nil, 2, "it takes one file, not 0"},
		{[]string{good, "--reboot"}, 2, "goes with --robot"},
		{[]string{good, "--robot", "de/sk"}, 2, "de/sk"},
		{[]string{writeFile(t, "page.bin", []byte("<html>"))}, 1, "no asset file"},
		{[]string{writeFile(t, "app.bin", simrobot.Image("1.3.0", 0))}, 1, "application"},
		{[]string{filepath.Join(t.TempDir(), "none")}, 1, "none"},
		{[]string{t.TempDir()}, 1, "is not a file"},
		{[]string{good, "--url", "http://127.0.0.1:1"}, 1, "does not answer"},
		{[]string{"--help"}, 0, ""},
	} {
		code, _, errs := tools(append([]string{"assets"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.stderr) || strings.Count(errs, "\n") != min(c.code, 1) {
			t.Errorf("%v: exit %d %s", c.args, code, errs)
		}
	}
}
