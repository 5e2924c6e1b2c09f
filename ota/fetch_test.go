package ota_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"perch/firmware-tools/simrobot"
)

func TestFetch(t *testing.T) {
	file := simrobot.Image("1.3.0", 100_000)
	sha := fmt.Sprintf("%x", sha256.Sum256(file))
	mux := http.NewServeMux()
	serve := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(file) }
	mux.HandleFunc("/app.bin", serve)
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/app.bin", http.StatusFound) })
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(17<<20))
		_, _ = io.CopyN(w, zeros{}, 17<<20)
	})
	mux.HandleFunc("/torn", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(file)))
		_, _ = w.Write(file[:50_000])
	})
	mux.HandleFunc("/other", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(simrobot.Image("1.4.0", 0)) })
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, c := range []struct{ name, url, sha, board, want string }{
		{"as it is", server.URL + "/app.bin", sha, board, ""},
		{"moved", server.URL + "/moved", sha, board, ""},
		{"moved for ever", server.URL + "/round", sha, board, "not_fetched"},
		{"not there", server.URL + "/secret", sha, board, "not_fetched"},
		{"too large", server.URL + "/large", sha, board, "not_fetched"},
		{"torn", server.URL + "/torn", sha, board, "truncated"},
		{"another file", server.URL + "/other", sha, board, "wrong_sha256"},
		{"nobody there", "http://127.0.0.1:1/secret", sha, board, "not_fetched"},
		{"no address", "file:///etc/passwd", sha, board, "bad_url"},
		{"no host", "http:///app.bin", sha, board, "bad_url"},
		{"no hash", server.URL + "/app.bin", "", board, "bad_sha256"},
		{"no board", server.URL + "/app.bin", sha, "", "bad_board"},
	} {
		s := newShop(t)
		version, err := s.Fetch(t.Context(), c.url, c.sha, c.board, time.Now())
		if word(err) != c.want || (version == "1.3.0") != (c.want == "") || len(s.List()) != len(s.files(t)) {
			t.Errorf("%s: %q, %v", c.name, version, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the address is told: %v", c.name, err)
		}
	}
}
