package models

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/must"
)

// content is the file of the model in these tests.
var content = bytes.Repeat([]byte("0123456789abcdef"), 10_000)

// modelAt returns a model with one file, which url serves.
func modelAt(url string) Model {
	sum := sha256.Sum256(content)
	return Model{Name: "m", Files: []File{{"weights", url, int64(len(content)), hex.EncodeToString(sum[:])}}}
}

// getter returns a getter without pauses.
func getter(folder Folder) Getter {
	return Getter{Folder: folder, Transport: http.DefaultTransport, pause: time.Nanosecond,
		Progress: func(File, int64) (io.Writer, func()) { return io.Discard, func() {} }}
}

// get downloads the model that handler serves into a folder.
func get(t *testing.T, folder Folder, handler http.HandlerFunc) error {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	return getter(folder).Get(t.Context(), modelAt(server.URL+"/weights"))
}

// whole serves the file, or the part that is requested.
func whole(w http.ResponseWriter, r *http.Request) {
	http.ServeContent(w, r, "weights", time.Time{}, bytes.NewReader(content))
}

// checkWeights fails the test unless the file is in its place and nothing else is.
func checkWeights(t *testing.T, folder Folder) {
	t.Helper()
	dir := filepath.Join(string(folder), "m")
	if got, err := os.ReadFile(filepath.Join(dir, "weights")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes are in their place (%v), want %d", len(got), err, len(content))
	}
	if exists(dir, "weights.part") {
		t.Error("an unfinished file is left")
	}
}

func TestGet(t *testing.T) {
	folder := Folder(t.TempDir())
	must.Succeed(t, get(t, folder, whole))
	checkWeights(t, folder)
	asked := false
	must.Succeed(t, get(t, folder, func(http.ResponseWriter, *http.Request) { asked = true }))
	if asked {
		t.Error("a file that is there was downloaded again")
	}
}

func TestGetContinuesWhatWasCutOff(t *testing.T) {
	folder := Folder(t.TempDir())
	var ranges []string
	must.Succeed(t, get(t, folder, func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Header.Get("Range"))
		if len(ranges) == 1 {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:70_000])
			return // the server closes the connection, because the body is shorter than Content-Length
		}
		whole(w, r)
	}))
	checkWeights(t, folder)
	if want := []string{"", "bytes=70000-"}; fmt.Sprint(ranges) != fmt.Sprint(want) {
		t.Errorf("requested %q, want %q", ranges, want)
	}
}

func TestGetContinuesLater(t *testing.T) {
	folder := Folder(t.TempDir())
	err := get(t, folder, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		if r.Header.Get("Range") == "" {
			_, _ = w.Write(content[:70_000])
			return
		}
		panic(http.ErrAbortHandler)
	})
	if err == nil || exists(filepath.Join(string(folder), "m"), "weights") {
		t.Fatalf("a file that was cut off counts as complete: %v", err)
	}
	var asked string
	must.Succeed(t, get(t, folder, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Range")
		whole(w, r)
	}))
	checkWeights(t, folder)
	if asked != "bytes=70000-" {
		t.Errorf("the second command requested %q", asked)
	}
}

func TestGetFromServerWithoutRanges(t *testing.T) {
	folder := Folder(t.TempDir())
	dir := filepath.Join(string(folder), "m")
	must.Succeed(t, os.MkdirAll(dir, 0o755))
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "weights.part"), content[:500], 0o644))
	must.Succeed(t, get(t, folder, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	checkWeights(t, folder)
}

func TestHostileDownloads(t *testing.T) {
	forged := bytes.Clone(content)
	forged[5]++
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"wrong checksum": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(forged) }, "another file"},
		"shorter than in the catalogue": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			_, _ = w.Write(content[:99])
		}, "99 bytes instead"},
		"longer than in the catalogue": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(content)
			for range 1000 {
				if _, err := w.Write(content); err != nil {
					return
				}
			}
		}, "more than"},
		"longer than it says": {func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			must.Succeed(t, err)
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 160000\r\n\r\n%s%s", forged, content)
		}, "another file"},
		"a web page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<html>Please log in</html>")
		}, "web page"},
		"not found": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "404"},
		"another part": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") == "" {
				w.Header().Set("Content-Length", fmt.Sprint(len(content)))
				_, _ = w.Write(content[:1000])
				return
			}
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-999/%d", len(content)))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(content[:1000])
		}, "another part"},
		"endless redirections": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) }, "redirections"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := Folder(t.TempDir())
			if err := get(t, folder, test.serve); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one about %q", err, test.want)
			}
			if exists(filepath.Join(string(folder), "m"), "weights") {
				t.Error("the file was kept")
			}
		})
	}
}

func TestGetNeedsSpace(t *testing.T) {
	m := modelAt("http://127.0.0.1:1/")
	m.Files[0].Size = 1 << 60
	if err := getter(Folder(t.TempDir())).Get(t.Context(), m); err == nil || !strings.Contains(err.Error(), "make room") {
		t.Errorf("a model larger than the disk: %v", err)
	}
}
