package manager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"perch/cmd/perch-speech/models"
	"perch/gateway/wyoming"
	"perch/must"
	wire "perch/voice/wyoming"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// content is the file of the models in these tests.
const content = "0123456789"

// start runs a server with a manager until the test ends. Its catalogue has the models a and b, whose files handler serves.
func start(t *testing.T, handler http.HandlerFunc) *wire.Speech {
	t.Helper()
	files := httptest.NewServer(handler)
	t.Cleanup(files.Close)
	sum := sha256.Sum256([]byte(content))
	var catalogue []models.Model
	for _, name := range []string{"a", "b"} {
		catalogue = append(catalogue, models.Model{Name: name, Job: models.Detects, Licence: "MIT", Source: "https://example.com/" + name, Files: []models.File{
			{Name: "silero_vad.onnx", URL: files.URL + "/" + name, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}}})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	s, err := wyoming.New(wyoming.Options{Listen: l, Log: slog.New(slog.DiscardHandler), Hold: func() func() { return func() {} },
		Local: New(models.Folder(t.TempDir()), catalogue, http.DefaultTransport).Handlers()})
	must.Succeed(t, err)
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(context.Background()) })
	t.Cleanup(func() {
		s.Close()
		running.Wait()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	speech, err := wire.NewSpeech("tcp://" + l.Addr().String())
	must.Succeed(t, err)
	return speech
}

// model returns the model in the list with a name.
func model(t *testing.T, s *wire.Speech, name string) wire.SpeechModel {
	t.Helper()
	list, err := s.Models(t.Context())
	must.Succeed(t, err)
	for _, m := range list {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("%q is not among %v", name, list)
	return wire.SpeechModel{}
}

func TestGetAndRemove(t *testing.T) {
	s := start(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(content)) })
	want := wire.SpeechModel{Name: "a", Does: "detects", Bytes: 10, Licence: "MIT", Source: "https://example.com/a"}
	if got := model(t, s, "a"); got != want {
		t.Errorf("before: %+v", got)
	}
	must.Succeed(t, s.Get(t.Context(), "a"))
	want.Installed = true
	if got := model(t, s, "a"); got != want {
		t.Errorf("after: %+v", got)
	}
	must.Succeed(t, s.Remove(t.Context(), "a"))
	if model(t, s, "a").Installed {
		t.Error("it was not removed")
	}
	for what, err := range map[string]error{"get": s.Get(t.Context(), "../a"), "remove": s.Remove(t.Context(), "../a")} {
		if err == nil || !strings.Contains(err.Error(), "there is no model") {
			t.Errorf("%s of another folder: %v", what, err)
		}
	}
}

// TestDisconnectingStopsTheDownload checks that one model is downloaded at a time, and that a download ends with its client and
// is continued later.
func TestDisconnectingStopsTheDownload(t *testing.T) {
	begun, stopped := make(chan struct{}), make(chan struct{})
	ranges := make(chan string, 1)
	s := start(t, func(w http.ResponseWriter, r *http.Request) {
		if from := r.Header.Get("Range"); from != "" {
			ranges <- from
			w.Header().Set("Content-Range", "bytes 4-9/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte(content[4:]))
			return
		}
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte(content[:4]))
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
		close(stopped)
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Get(ctx, "a") }()
	<-begun
	for m := model(t, s, "a"); !m.Getting || m.Progress != 4; m = model(t, s, "a") {
		if m.Installed {
			t.Fatalf("it is %+v", m)
		}
	}
	for what, err := range map[string]error{"a second": s.Get(t.Context(), "b"), "the same": s.Get(t.Context(), "a"), "removal": s.Remove(t.Context(), "a")} {
		if err == nil || !strings.Contains(err.Error(), "a is being downloaded") {
			t.Errorf("%s during a download: %v", what, err)
		}
	}
	cancel()
	<-stopped
	if err := <-ended; err != context.Canceled {
		t.Errorf("the download ended with %v", err)
	}
	for model(t, s, "a").Getting { // the server notices it soon
	}
	must.Succeed(t, s.Get(t.Context(), "a"))
	if from := <-ranges; from != "bytes=4-" {
		t.Errorf("it was continued by %q", from)
	}
	if !model(t, s, "a").Installed {
		t.Error("it is not complete")
	}
}
