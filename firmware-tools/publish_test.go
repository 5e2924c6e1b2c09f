package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perch/firmware-tools/simrobot"
)

func TestPublish(t *testing.T) {
	file := simrobot.Image("1.3.0", 0)
	name := writeFile(t, "app.bin", file)
	token := writeFile(t, "token", []byte("secret\n"))
	a, url := newAdminAPI(t, adminAPI{})
	sha := fmt.Sprintf("%x", sha256.Sum256(file))
	code, out, errs := tools("publish", "--board", "b", "--board", "c", name, "--url", url, "--token-file", token, "--signature", "AA==")
	if code != 0 || errs != "" || !strings.Contains(out, "published stack-chan 1.3.0 for b, c") || !strings.Contains(out, sha) ||
		!strings.Contains(out, "no robot is offered it yet") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
	want := "POST /api/v1/firmware board=b&board=c&sha256=" + sha + "&signature=AA%3D%3D Bearer secret " + string(file)
	if !slices.Equal(a.asked, []string{want}) {
		t.Errorf("asked %q", a.asked)
	}
	a.asked = nil
	code, out, errs = tools("publish", "--board", "b", name, "--url", url, "--auto", "--percent", "10", "--hours", "02:00-05:00")
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
	check(t, "publish", []call{
		{[]string{good}, 2, "--board must name"},
		{[]string{"--board", "b"}, 2, "it takes one file, not 0"},
		{[]string{"--board", "b", good, "--percent", "10"}, 2, "go with --auto"},
		{[]string{"--board", "b", good, "--url", "perch"}, 2, "is not an address"},
		{[]string{"--board", "b", bad}, 1, "no firmware image"},
		{[]string{"--board", "b", filepath.Join(t.TempDir(), "none")}, 1, "none"},
		{[]string{"--board", "b", good, "--url", url}, 1, "the signature[2J is wrong"},
		{[]string{"--board", "b", good, "--url", odd}, 1, "answered 502"},
		{[]string{"--board", "b", good, "--url", "http://127.0.0.1:1"}, 1, "does not answer"},
		{[]string{"--help"}, 0, ""},
	})
}
