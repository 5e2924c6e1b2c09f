package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const transcript = "    0.000 < {\"type\":\"hello\"}\n    1.260 * heard {\"text\":\"😊 \"}\n"

// newRecorded returns the URL of a fake appliance with the robot a0b1c2d3e4f5. serve handles requests
// for the robot's transcript.
func newRecorded(t *testing.T, serve func(w http.ResponseWriter, r *http.Request)) (address string) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/devices/a0b1c2d3e4f5/record", serve)
	mux.HandleFunc("/api/v1/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"code":"unknown_robot","message":"unknown robot"}}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func sendTranscript(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, transcript)
}

func TestRecord(t *testing.T) {
	t.Setenv("PERCH_URL", newRecorded(t, sendTranscript))
	for _, robot := range []string{"a0b1c2d3e4f5", "A0:B1:C2:D3:E4:F5"} {
		if code, out, errs := tools("robot", "record", robot); code != 0 || out != transcript || errs != "" {
			t.Errorf("%s: exit %d, %q, %s", robot, code, out, errs)
		}
	}
}

func TestRecordToAFile(t *testing.T) {
	address, path := newRecorded(t, sendTranscript), filepath.Join(t.TempDir(), "talk.txtar")
	code, out, errs := tools("robot", "record", "--url", address+"/", "a0b1c2d3e4f5", "--out", path)
	text, err := os.ReadFile(path)
	if code != 0 || out != "" || errs != "" || err != nil || string(text) != transcript {
		t.Errorf("exit %d, %q, %s; the file holds %q (%v)", code, out, errs, text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	// A recording that fails at its start does not change an existing file.
	check(t, "robot record --url "+address, call{[]string{"020000000001", "--out", path}, 1, "unknown robot"},
		call{[]string{"a0b1c2d3e4f5", "--out", filepath.Join(path, "x")}, 1, "open the transcript"})
	if text := content(t, path); text != transcript {
		t.Errorf("the file holds %q", text)
	}
}

// lineByLine is an io.Writer that sends the text of each write to the channel.
type lineByLine chan string

func (l lineByLine) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

func TestRecordUntilInterrupted(t *testing.T) {
	lines := make(chan string)
	address := newRecorded(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		control := http.NewResponseController(w)
		for {
			if err := control.Flush(); err != nil {
				t.Error(err)
			}
			select {
			case line := <-lines:
				_, _ = io.WriteString(w, line)
			case <-r.Context().Done():
				return
			}
		}
	})
	ctx, interrupt := context.WithCancel(t.Context())
	terminal, errs, ended := make(lineByLine), &bytes.Buffer{}, make(chan int)
	go func() {
		ended <- run(ctx, []string{"robot", "record", "a0b1c2d3e4f5", "--url", address}, terminal, errs)
	}()
	for _, line := range []string{"one\n", "two 😊\n"} {
		lines <- line
		if got := <-terminal; got != line {
			t.Errorf("shown is %q, want %q", got, line)
		}
	}
	interrupt()
	if code := <-ended; code != 0 || errs.Len() > 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
}

func TestRecordShowsNoControlSequences(t *testing.T) {
	const sent = "a\x1b[2J\x07\tb\x7f\r😊\n"
	address := newRecorded(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		for i := range len(sent) { // send single bytes, so that writes end in the middle of a character
			_, _ = io.WriteString(w, sent[i:i+1])
			_ = http.NewResponseController(w).Flush()
		}
	})
	if code, out, errs := tools("robot", "record", "a0b1c2d3e4f5", "--url", address); code != 0 || out != "a[2J\tb😊\n" {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
	path := filepath.Join(t.TempDir(), "talk")
	check(t, "robot record a0b1c2d3e4f5 --url "+address, call{[]string{"--out", path}, 0, ""})
	if text := content(t, path); text != sent {
		t.Errorf("the file holds %q", text)
	}
}

func TestRecordThatBreaksOff(t *testing.T) {
	address := newRecorded(t, func(w http.ResponseWriter, r *http.Request) {
		sendTranscript(w, r)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if code, out, errs := tools("robot", "record", "a0b1c2d3e4f5", "--url", address); code != 1 || out != transcript || !strings.Contains(errs, "broke off") {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
}

func TestRecordTokenFromFileOrEnvironment(t *testing.T) {
	address := newRecorded(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"code":"wrong_key","message":"a bearer token is needed, not <%s>"}}`, r.Header.Get("Authorization"))
			return
		}
		sendTranscript(w, r)
	})
	file := writeFile(t, "token", []byte("secret\n"))
	check(t, "robot record a0b1c2d3e4f5 --url "+address, call{nil, 1, "a bearer token is needed, not <>"},
		call{[]string{"--token-file", file}, 0, transcript})
	t.Setenv("PERCH_TOKEN", "secret")
	check(t, "robot record a0b1c2d3e4f5 --url "+address, call{nil, 0, transcript})
}

func TestRecordExitCodes(t *testing.T) {
	page := newRecorded(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	check(t, "robot record", []call{
		{nil, 2, "it takes ROBOT, but 0 arguments were given"},
		{[]string{"a0b1c2d3e4f5", "more"}, 2, "it takes ROBOT, but 2 arguments were given"},
		{[]string{"kit/chen"}, 2, "not a robot's name"},
		{[]string{"--url", page, "kitchen"}, 1, "unknown robot"},
		{[]string{"a0b1c2d3e4f5", "--loud"}, 2, "unknown flag: --loud"},
		{[]string{"a0b1c2d3e4f5", "--url", "x"}, 2, "is not a URL such as"},
		{[]string{"a0b1c2d3e4f5", "--url", "/"}, 2, "is not a URL such as"},
		{[]string{"a0b1c2d3e4f5", "--url="}, 2, "is not a URL such as"},
		{[]string{"a0b1c2d3e4f5", "--help"}, 0, "usage: perch-tools robot record"},
		{[]string{"--help"}, 0, "usage: perch-tools robot record"},
		{[]string{"--url", page, "a0b1c2d3e4f5"}, 1, "responded with 200 OK, but without a transcript"},
		{[]string{"--url", "http://127.0.0.1:1", "a0b1c2d3e4f5"}, 1, "does not respond: dial tcp 127.0.0.1:1: connect: connection refused"},
		{[]string{"--token-file", "/nowhere/token", "a0b1c2d3e4f5"}, 1, "read the admin token"},
	}...)
}
