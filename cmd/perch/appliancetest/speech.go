package appliancetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"perch/cmd/perch-speech/manager"
	"perch/cmd/perch-speech/models"
	"perch/gateway/wyoming"
	"perch/must"
)

// speechFile is the file of the models that Speech offers.
const speechFile = "the weights of a model"

// Speech runs a perch-speech without engines until the test ends, and returns its address. Its models have small files, which
// a server on this machine sends: those of "good" at once, of "wrong" with other bytes, and of "cut" and "slow" the half first.
// Then it disconnects for "cut", and waits for "slow" until the client disconnects. A later request for the rest of the file
// gets it. The disk has no room for "huge".
func Speech(t *testing.T) (address string) {
	t.Helper()
	files := httptest.NewServer(http.HandlerFunc(sendSpeechFile))
	t.Cleanup(files.Close)
	sum := sha256.Sum256([]byte(speechFile))
	var catalogue []models.Model
	for _, name := range []string{"good", "wrong", "cut", "slow", "huge"} {
		file := models.File{Name: "silero_vad.onnx", URL: files.URL + "/" + name, Size: int64(len(speechFile)), SHA256: hex.EncodeToString(sum[:])}
		if name == "huge" {
			file.Size = 1 << 60
		}
		catalogue = append(catalogue, models.Model{Name: name, Job: models.Detects, Licence: "MIT", Source: "https://example.com/" + name, Files: []models.File{file}})
	}
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	transport := &http.Transport{DisableKeepAlives: true}
	s := must.Value(wyoming.New(wyoming.Options{Listen: l, Log: slog.New(slog.DiscardHandler), Hold: func() func() { return func() {} },
		Local: manager.New(models.Folder(t.TempDir()), catalogue, transport).Handlers()}))(t)
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(context.Background()) })
	t.Cleanup(func() {
		s.Close()
		running.Wait()
	})
	return "tcp://" + l.Addr().String()
}

// sendSpeechFile is the server of the models' files.
func sendSpeechFile(w http.ResponseWriter, r *http.Request) {
	const half = len(speechFile) / 2
	switch name := strings.TrimPrefix(r.URL.Path, "/"); {
	case name == "wrong":
		_, _ = w.Write([]byte(strings.ToUpper(speechFile)))
	case r.Header.Get("Range") == fmt.Sprintf("bytes=%d-", half):
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", half, len(speechFile)-1, len(speechFile)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write([]byte(speechFile[half:]))
	case name == "good":
		_, _ = w.Write([]byte(speechFile))
	default:
		w.Header().Set("Content-Length", fmt.Sprint(len(speechFile)))
		_, _ = w.Write([]byte(speechFile[:half]))
		_ = http.NewResponseController(w).Flush()
		if name == "slow" {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}
}
