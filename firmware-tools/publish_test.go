package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perch/firmware-tools/simrobot"
	"perch/ota/espimage/espimagetest"
)

func TestPublish(t *testing.T) {
	file := simrobot.Image("1.3.0", 0)
	name := writeFile(t, "app.bin", file)
	token := writeFile(t, "token", []byte("secret\n"))
	a, url := newAdminAPI(t, adminAPI{})
	sha := fmt.Sprintf("%x", sha256.Sum256(file))
	code, out, errs := tools("firmware", "publish", "--board", "b", "--board", "c", name, "--url", url, "--token-file", token, "--signature", "AA==")
	if code != 0 || errs != "" || !strings.Contains(out, "published stack-chan 1.3.0 for b, c") || !strings.Contains(out, sha) ||
		!strings.Contains(out, "this did not start a rollout") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
	want := "POST /api/v1/firmware board=b&board=c&sha256=" + sha + "&signature=AA%3D%3D Bearer secret " + string(file)
	if !slices.Equal(a.asked, []string{want}) {
		t.Errorf("asked %q", a.asked)
	}
	a.asked = nil
	code, out, errs = tools("firmware", "publish", "--board", "b", name, "--url", url, "--auto", "--percent", "10", "--hours", "02:00-05:00")
	if code != 0 || !strings.Contains(out, "rolled out to 10 %") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
	want = "POST /api/v1/firmware/" + sha + `/rollout   {"boards":["b"],"percent":10,"hours":"02:00-05:00","auto":true}`
	if len(a.asked) != 2 || a.asked[1] != want {
		t.Errorf("asked %q", a.asked)
	}
}

func TestPublishRefused(t *testing.T) {
	good := writeFile(t, "app.bin", simrobot.Image("1.3.0", 0))
	bad := writeFile(t, "bad.bin", []byte("<html>"))
	_, url := newAdminAPI(t, adminAPI{status: http.StatusForbidden,
		answer: `{"error":{"code":"bad_signature","message":"the signature\u001b[2J is wrong"}}`})
	_, odd := newAdminAPI(t, adminAPI{status: http.StatusBadGateway, answer: "<html>"})
	check(t, "firmware publish", []call{
		{[]string{good}, 2, "--board is required"},
		{[]string{"--board", "b"}, 2, "but 0 arguments were given"},
		{[]string{"--board", "b", good, "--percent", "10"}, 2, "go with --auto"},
		{[]string{"--board", "b", good, "--url", "perch"}, 2, "is not a URL"},
		{[]string{"--board", "b", bad}, 1, "not a firmware image"},
		{[]string{"--board", "b", filepath.Join(t.TempDir(), "none")}, 1, "none"},
		{[]string{"--board", "b", good, "--url", url}, 1, "the signature[2J is wrong"},
		{[]string{"--board", "b", good, "--url", odd}, 1, "responded with 502"},
		{[]string{"--board", "b", good, "--url", "http://127.0.0.1:1"}, 1, "does not respond"},
		{[]string{"--help"}, 0, ""},
	}...)
}

// adminAPI is a fake of an appliance's admin API. It records all requests, and rejects some.
type adminAPI struct {
	asked  []string // one line per request: method, path, query, Authorization header and body
	status int      // HTTP status of a rejection; 0 to accept all requests
	refuse string   // requests whose path has this suffix are rejected
	answer string   // body of a rejection
}

func newAdminAPI(t *testing.T, a adminAPI) (*adminAPI, string) {
	server := httptest.NewServer(&a)
	t.Cleanup(server.Close)
	return &a, server.URL
}

func (a *adminAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.asked = append(a.asked, strings.Join([]string{r.Method, r.URL.Path, r.URL.Query().Encode(), r.Header.Get("Authorization"), string(body)}, " "))
	if a.status != 0 && strings.HasSuffix(r.URL.Path, a.refuse) {
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.answer)
	}
}

func TestAssets(t *testing.T) {
	file := writeFile(t, "de.bin", espimagetest.Assets("index.json", "{}"))
	token := writeFile(t, "token", []byte("secret\n"))
	a, url := newAdminAPI(t, adminAPI{})
	check(t, "firmware assets --url "+url,
		call{[]string{file, "--check"}, 0, "index.json"},
		call{[]string{file, "--token-file", token}, 0, "no robot downloads it yet: choose one with --robot; its channel must be open"},
		call{[]string{file, "--name", "fonts.bin", "--robot", "A0:B1:C2:D3:E4:F5", "--reboot"}, 0, "a0b1c2d3e4f5 restarts"})
	want := []string{
		"POST /api/v1/assets/de.bin  Bearer secret " + string(espimagetest.Assets("index.json", "{}")),
		"POST /api/v1/assets/fonts.bin   " + string(espimagetest.Assets("index.json", "{}")),
		`POST /api/v1/devices/a0b1c2d3e4f5/assets   {"name":"fonts.bin"}`,
		"POST /api/v1/devices/a0b1c2d3e4f5/reboot   ",
	}
	if !slices.Equal(a.asked, want) {
		t.Errorf("asked %q", a.asked)
	}
	a.status, a.refuse = http.StatusConflict, "/devices/a0b1c2d3e4f5/assets"
	a.answer = `{"error":{"code":"robot_offline","message":"its channel is closed"}}`
	code, out, errs := tools("firmware", "assets", file, "--url", url, "--robot", "a0b1c2d3e4f5", "--reboot")
	if code != 1 || !strings.Contains(errs, "the file is uploaded, but a0b1c2d3e4f5 does not download it: its channel is closed") ||
		!strings.Contains(out, "robots can download it as de.bin") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
}

func TestAssetsRefused(t *testing.T) {
	good := writeFile(t, "de.bin", espimagetest.Assets("index.json", "{}"))
	check(t, "firmware assets", []call{
		{nil, 2, "but 0 arguments were given"},
		{[]string{good, "--reboot"}, 2, "goes with --robot"},
		{[]string{good, "--robot", "de/sk"}, 2, "de/sk"},
		{[]string{writeFile(t, "page.bin", []byte("<html>"))}, 1, "not an asset file"},
		{[]string{writeFile(t, "app.bin", simrobot.Image("1.3.0", 0))}, 1, "application"},
		{[]string{filepath.Join(t.TempDir(), "none")}, 1, "none"},
		{[]string{t.TempDir()}, 1, "is not a file"},
		{[]string{good, "--url", "http://127.0.0.1:1"}, 1, "does not respond"},
		{[]string{"--help"}, 0, ""},
	}...)
}
