package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"perch/firmware-tools/simrobot"
)

// catalogue records requests, and gives a fixed answer.
type catalogue struct {
	asked  []string
	upload []byte
	status int
	answer string
}

func (c *catalogue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.asked = append(c.asked, strings.Join([]string{r.Method, r.URL.Path, r.URL.Query().Encode(), r.Header.Get("Authorization")}, " "))
	if r.URL.Path == "/api/v1/firmware" {
		c.upload = body
	} else {
		c.asked = append(c.asked, string(body))
	}
	if c.status != 0 {
		w.WriteHeader(c.status)
	}
	_, _ = io.WriteString(w, c.answer)
}

func TestPublish(t *testing.T) {
	file := simrobot.Image("1.3.0", 0)
	name := writeFile(t, "app.bin", file)
	token := writeFile(t, "token", []byte("secret\n"))
	c := &catalogue{}
	server := httptest.NewServer(c)
	defer server.Close()
	sha := fmt.Sprintf("%x", sha256.Sum256(file))
	code, out, errs := tools("publish", "--board", "b", "--board", "c", name, "--url", server.URL, "--token-file", token, "--signature", "AA==")
	if code != 0 || errs != "" || !strings.Contains(out, "published stack-chan 1.3.0 for b, c") || !strings.Contains(out, sha) ||
		!strings.Contains(out, "no robot is offered it yet") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
	if want := "POST /api/v1/firmware board=b&board=c&sha256=" + sha + "&signature=AA%3D%3D Bearer secret"; len(c.asked) != 1 || c.asked[0] != want ||
		!bytes.Equal(c.upload, file) {
		t.Errorf("asked %q", c.asked)
	}
	c.asked = nil
	code, out, errs = tools("publish", "--board", "b", name, "--url", server.URL, "--auto", "--percent", "10", "--hours", "02:00-05:00")
	if code != 0 || !strings.Contains(out, "rolled out to 10 %") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
	if len(c.asked) != 3 || !strings.HasPrefix(c.asked[1], "POST /api/v1/firmware/"+sha+"/rollout") ||
		c.asked[2] != `{"boards":["b"],"percent":10,"hours":"02:00-05:00","auto":true}` {
		t.Errorf("asked %q", c.asked)
	}
}

func TestPublishRefused(t *testing.T) {
	good := writeFile(t, "app.bin", simrobot.Image("1.3.0", 0))
	bad := writeFile(t, "bad.bin", []byte("<html>"))
	c := &catalogue{status: http.StatusForbidden, answer: `{"error":{"code":"bad_signature","message":"the signature\u001b[2J is wrong"}}`}
	server := httptest.NewServer(c)
	defer server.Close()
	odd := httptest.NewServer(&catalogue{status: http.StatusBadGateway, answer: "<html>"})
	defer odd.Close()
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{good}, 2, "--board must name"},
		{[]string{"--board", "b"}, 2, "it takes one file, not 0"},
		{[]string{"--board", "b", good, "--percent", "10"}, 2, "go with --auto"},
		{[]string{"--board", "b", good, "--url", "perch"}, 2, "is not an address"},
		{[]string{"--board", "b", bad}, 1, "no firmware image"},
		{[]string{"--board", "b", filepath.Join(t.TempDir(), "none")}, 1, "none"},
		{[]string{"--board", "b", good, "--url", server.URL}, 1, "the signature[2J is wrong"},
		{[]string{"--board", "b", good, "--url", odd.URL}, 1, "answered 502"},
		{[]string{"--board", "b", good, "--url", "http://127.0.0.1:1"}, 1, "does not answer"},
		{[]string{"--help"}, 0, ""},
	} {
		code, _, errs := tools(append([]string{"publish"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.stderr) || strings.Count(errs, "\n") != min(c.code, 1) {
			t.Errorf("%v: exit %d %s", c.args, code, errs)
		}
	}
}
