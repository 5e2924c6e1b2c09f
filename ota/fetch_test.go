package ota_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/firmware-tools/simrobot"
	"perch/ota"
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
		_, _ = io.CopyN(w, endless{}, 17<<20)
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
		s := newCatalogue(t)
		version, err := s.Fetch(t.Context(), c.url, c.sha, c.board, time.Now())
		if codeOf(err) != c.want || (version == "1.3.0") != (c.want == "") || len(s.List()) != len(s.files(t)) {
			t.Errorf("%s: %q, %v", c.name, version, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the address is told: %v", c.name, err)
		}
	}
}

// trickle is a transport whose response arrives in pieces at an interval. After the last piece the response
// stalls.
type trickle struct {
	file   []byte
	pieces int
	every  time.Duration
	ctx    context.Context
}

func (f *trickle) RoundTrip(r *http.Request) (*http.Response, error) {
	f.ctx = r.Context()
	return &http.Response{StatusCode: http.StatusOK, ContentLength: int64(len(f.file)), Body: io.NopCloser(f), Header: http.Header{}}, nil
}

func (f *trickle) Read(p []byte) (int, error) {
	if f.pieces == 0 {
		<-f.ctx.Done() // the body of a real connection also ends with its request
		return 0, f.ctx.Err()
	}
	time.Sleep(f.every)
	f.pieces--
	n := copy(p, f.file[:min(1000, len(f.file))])
	f.file = f.file[n:]
	if len(f.file) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func TestFetchIsGivenUpWithoutProgress(t *testing.T) {
	file := simrobot.Image("1.3.0", 10_000)
	sha := fmt.Sprintf("%x", sha256.Sum256(file))
	for _, c := range []struct {
		pieces int
		every  time.Duration
		want   string
		took   time.Duration
	}{
		{100, 29 * time.Second, "", 11 * 29 * time.Second},
		{3, 20 * time.Second, "not_fetched", 90 * time.Second},
		{0, 0, "not_fetched", 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newCatalogue(t, func(o *ota.FirmwareOptions) { o.Fetch = &trickle{file: file, pieces: c.pieces, every: c.every} })
			began := time.Now()
			_, err := s.Fetch(t.Context(), "http://example.test/app.bin", sha, board, began)
			if codeOf(err) != c.want || time.Since(began) != c.took || len(s.List()) != len(s.files(t)) {
				t.Errorf("%d pieces: after %v: %v", c.pieces, time.Since(began), err)
			}
			if err != nil && !strings.Contains(err.Error(), "nothing arrived for 30 seconds") {
				t.Error(err)
			}
		})
	}
}
