package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/must"
)

// answersWith starts a server that sends the same response to every request, and returns its URL.
func answersWith(t *testing.T, status int, body any) string {
	t.Helper()
	text := must.Value(json.Marshal(body))(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestAnswersMoveNoTerminal checks that commands print responses of a server without control sequences for
// terminals, also as JSON and in errors.
func TestAnswersMoveNoTerminal(t *testing.T) {
	const nasty = "\x1b]0;owned\x07\x1b[2J\u009b2J\u202e\r"
	link := answersWith(t, http.StatusCreated, map[string]any{"urls": []string{"http://h/" + nasty + "#/in/X"}, "until": time.Now(),
		"qr": []string{"1" + nasty}})
	memory := answersWith(t, http.StatusOK, map[string]any{"stats": nasty, "url": nasty, "id": nasty, "name": nasty, "version": nasty, "next": nasty})
	wrong := answersWith(t, http.StatusConflict, map[string]any{"error": map[string]string{"message": "no " + nasty + "\nperch: forged"}})
	for _, args := range [][]string{
		{"open", "--url", link}, {"open", "--json", "--url", link}, {"open", "--url", wrong}, {"status", "--url", wrong},
		{"status", "--url", memory}, {"status", "--json", "--url", memory}, {"notification", "send", "x", "--url", memory},
		{"status", "--url", "http://127.0.0.1:1/" + nasty},
	} {
		_, out, errs := commandLine(t, args...)
		if strings.ContainsAny(out+errs, "\x1b\x07\r\u009b") || strings.Count(errs, "\n") > 1 ||
			!slices.Contains(args, "--json") && strings.Contains(out+errs, "\u202e") {
			t.Errorf("%q prints %q and %q", args, out, errs)
		}
		if out+errs == "" {
			t.Errorf("%q prints nothing", args)
		}
	}
}

// TestOpenOpensPagesAlone checks that perch open passes xdg-open only http and https addresses of a server's response:
// other addresses could open a file or start a program on this machine.
func TestOpenOpensPagesAlone(t *testing.T) {
	bin := t.TempDir()
	opened := filepath.Join(bin, "opened")
	must.Succeed(t, os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\nprintf '%s' \"$1\" >"+opened+"\n"), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":0")
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, like a terminal
	must.Succeed(t, err)
	defer terminal.Close()
	for link, want := range map[string]string{
		"http://127.0.0.1:8004/#/in/X": "http://127.0.0.1:8004/#/in/X",
		"https://perch.local/#/in/X":   "https://perch.local/#/in/X",
		"file:///etc/passwd":           "",
		"javascript:alert(1)":          "",
		"vscode://x/y":                 "",
		"--help":                       "",
		"/bin/sh":                      "",
		"http:":                        "",
		"http://h/\x1b[2J":             "",
	} {
		_ = os.Remove(opened)
		at := answersWith(t, http.StatusCreated, map[string]any{"urls": []string{"http://first/", link}, "until": time.Now()})
		if code := run(t.Context(), []string{"open", "--url", at}, terminal, terminal); code != exitDone {
			t.Errorf("%q: it exits with %d", link, code)
		}
		if got, _ := os.ReadFile(opened); string(got) != want {
			t.Errorf("of %q it opens %q, want %q", link, got, want)
		}
	}
}

// TestAQRCodeIsDrawn checks the modules and the margin of a drawn code. Each character shows two modules, one above
// the other.
func TestAQRCodeIsDrawn(t *testing.T) {
	rows := []string{"101", "010", "110"}
	var got [][]byte
	for line := range strings.Lines(drawQR(rows)) {
		line = strings.TrimSuffix(strings.TrimPrefix(line, "\x1b[30;107m"), "\x1b[0m\n")
		var up, down []byte
		for _, c := range line {
			i := strings.IndexRune(" ▀▄█", c)
			both := map[int]string{0: "00", 1: "10", 4: "01", 7: "11"}[i]
			up, down = append(up, both[0]), append(down, both[1])
		}
		got = append(got, up, down)
	}
	var text strings.Builder
	for _, row := range got {
		text.WriteString(string(row) + "\n")
	}
	want := strings.Join([]string{"0000000", "0000000", "0010100", "0001000", "0011000", "0000000", "0000000", "0000000", ""}, "\n")
	if text.String() != want {
		t.Errorf("it is\n%s, want\n%s", text.String(), want)
	}
}
