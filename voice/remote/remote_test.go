package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"perch/voice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const canary = "sk-canary/0f3d9a+Zq"

func client(t testing.TB) *Client {
	t.Helper()
	c, err := New(Options{Service: "the speech server", URL: "http://127.0.0.1:8000/v1", Key: canary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// answer is one that is there already.
func answer(c *Client, kind string, body io.Reader) *Answer {
	within, cancel := context.WithCancelCause(context.Background())
	w := newWatch(time.Minute, func() {})
	return &Answer{client: c, ctx: context.Background(), within: within, watch: w, arrival: voice.NewArrival(c.o.Idle),
		end:      func() { w.end(); cancel(nil) },
		response: &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(body)}}
}

// FuzzSound: whatever a server sends, in whatever pieces, it is sound within
// limits or one sentence, and the same in all pieces.
func FuzzSound(f *testing.F) {
	var wav bytes.Buffer
	_ = voice.WriteWAV(&wav, 16000, make([]int16, 300))
	f.Add("audio/pcm", []byte("\x01\x02\x03\x04\x05"), false)
	f.Add("audio/pcm;rate=16000", bytes.Repeat([]byte{9}, 5000), true)
	f.Add("audio/wav", wav.Bytes(), true)
	f.Add("audio/wav", wav.Bytes()[:30], false)
	f.Add("audio/mpeg", append([]byte{0xff, 0xfb, 0x90, 0}, make([]byte, 500)...), false)
	f.Add("", append([]byte{0xff, 0xf3, 0x10, 0}, make([]byte, 500)...), true)
	f.Add("text/html", []byte("<html>"), false)
	f.Add("application/json", []byte(`{"error":{"message":"`+canary+`"}}`), true)
	f.Fuzz(func(t *testing.T, kind string, body []byte, cut bool) {
		c := client(t)
		heard := func(r io.Reader) ([]int16, string) {
			if cut {
				r = io.MultiReader(r, iotest.ErrReader(io.ErrUnexpectedEOF))
			}
			a := answer(c, kind, r)
			defer a.Close()
			var pcm []int16
			err := a.Sound("Hello.", 24000, func(p []int16) error { pcm = append(pcm, p...); return nil })
			if err == nil {
				return pcm, ""
			}
			if !errors.Is(err, voice.ErrUnavailable) || strings.Contains(err.Error(), canary) {
				t.Errorf("%v", err)
			}
			return pcm, err.Error()
		}
		whole, why := heard(bytes.NewReader(body))
		bytewise, whyBytewise := heard(iotest.OneByteReader(bytes.NewReader(body)))
		if len(whole) != len(bytewise) || why != whyBytewise {
			t.Errorf("%d samples and %q at once, %d and %q byte by byte", len(whole), why, len(bytewise), whyBytewise)
		}
		if cut && why == "" {
			t.Error("a cut is taken for the end")
		}
		if len(whole) > 3*len(body)+100 {
			t.Errorf("%d samples of %d bytes", len(whole), len(body))
		}
	})
}

// FuzzComplaint: whatever stands around a key in an error, no part of it that
// is of use is shown.
func FuzzComplaint(f *testing.F) {
	f.Add("application/json", []byte(`{"error":{"message":"bad `), []byte(`"}}`))
	f.Add("application/json", []byte(`{"detail":[{"loc":["body","x"],"msg":"`), []byte(`"}]}`))
	f.Add("application/json", []byte(`{"detail":{"status":"`), []byte(`","message":"m"}}`))
	f.Add("text/plain", []byte("Bearer "), []byte(" is bad"))
	f.Add("text/plain", bytes.Repeat([]byte(" "), mostComplaint-10), []byte(""))
	f.Add("", []byte("\x00\xff"), []byte("\u202e"))
	f.Fuzz(func(t *testing.T, kind string, before, after []byte) {
		c := client(t)
		body := append(append(bytes.Clone(before), canary...), after...)
		code, detail := c.complaint(kind, body[:min(len(body), mostComplaint)])
		for _, shown := range []string{code, detail} {
			if strings.Contains(shown, canary) || strings.Contains(shown, canary[:10]) && !bytes.Contains(before, []byte(canary[:10])) && !bytes.Contains(after, []byte(canary[:10])) {
				t.Errorf("shows %q", shown)
			}
			if strings.ContainsAny(shown, "\r\n\x00\x1b") || len([]rune(shown)) > mostShown+1 {
				t.Errorf("%q is not one short line", shown)
			}
		}
	})
}

func TestAnAnswerThatIsClosedKeepsNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "abc") }))
	defer server.Close()
	c, err := New(Options{Service: "the speech server", URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Call(t.Context(), Request{Method: http.MethodGet, Path: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if body, err := a.Whole(3); err != nil || string(body) != "abc" {
		t.Errorf("%q, %v", body, err)
	}
	a.Close()
	if a.within.Err() == nil || !a.watch.over {
		t.Error("the call goes on")
	}
}

// TestAKeyCutInTwo lets every limit fall into the key once.
func TestAKeyCutInTwo(t *testing.T) {
	c := client(t)
	for _, pad := range []string{" ", "a ", "Bearer x "} {
		for i := range 2 * len(canary) {
			n := mostComplaint - i
			if i >= len(canary) {
				n -= mostKey - len(canary)
			}
			text := strings.Repeat(pad, n/len(pad)+1)[:n] + canary
			_, detail := c.complaint("text/plain", []byte(text)[:min(len(text), mostComplaint)])
			if quoted := c.Quote(text); strings.Contains(detail+quoted, canary[:4]) {
				t.Fatalf("after %d bytes of %q: %q, %q", n, pad, detail, quoted)
			}
		}
	}
}

func TestNamesOfModelsAreNoKeys(t *testing.T) {
	c := client(t)
	for _, name := range []string{
		"Systran/faster-distil-whisper-large-v3", "speaches-ai/Kokoro-82M-v1.0-ONNX", "gpt-4o-mini-transcribe-2025-12-15",
		"hexgrad/Kokoro-82M", "piper-en_US-lessac-medium", "eleven_multilingual_v2", "unsupported_response_format",
	} {
		if got := c.Quote(name); got != name {
			t.Errorf("%q becomes %q", name, got)
		}
	}
	for _, key := range []string{canary, "sk-proj-abcdefgh", "0123456789abcdef0123456789abcdef", "gsk_abcdefghij", "Bearer x.y.z", "abc***xyz"} {
		if got := c.Quote("it is " + key); got != "it is (key)" {
			t.Errorf("%q becomes %q", key, got)
		}
	}
}

func TestFramesOfMP3(t *testing.T) {
	for head, want := range map[string]int{
		"\xff\xfb\x90\x00": 417, "\xff\xfb\x92\x00": 418, "\xff\xf3\x40\xc4": 104, "\xff\xe3\x40\xc4": 208,
		"\xff\xff\xff\xff": 0, "\x00\x00\x00\x00": 0, "\xff\xfb\xf0\x00": 0, "\xff\xfb\x00\x00": 0, "\xff\xfb\x9c\x00": 0, "\xff\xfb": 0,
	} {
		if got := mpegFrame([]byte(head)); got != want {
			t.Errorf("%x: %d bytes, want %d", head, got, want)
		}
	}
}
