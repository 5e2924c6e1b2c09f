package media

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"perch/must"
	"perch/remote"
	"perch/voice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const canary = "sk-canary/0f3d9a+Zq"

func client(t testing.TB) *Client {
	t.Helper()
	c, err := New(Options{Service: "the speech server", URL: "http://127.0.0.1:8000/v1", Key: canary})
	must.Succeed(t, err)
	t.Cleanup(c.Close)
	return c
}

// answer returns a client that gets the same response to every request.
func answer(t testing.TB, kind string, body io.Reader) *Client {
	c := client(t)
	o := remote.Options{Server: c.Server, Base: &url.URL{Scheme: "http", Host: "127.0.0.1"}, First: time.Minute, Idle: time.Minute,
		Transport: given(func() *http.Response {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(body)}
		})}
	c.Client = remote.NewClient(o)
	return c
}

// given is a transport that returns a response without a network.
type given func() *http.Response

func (g given) RoundTrip(*http.Request) (*http.Response, error) { return g(), nil }

// FuzzSound checks that any response results in a bounded sound or an error of one
// sentence, and that the result does not depend on how the response is divided
// into reads.
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
		heard := func(r io.Reader) ([]int16, string) {
			if cut {
				r = io.MultiReader(r, iotest.ErrReader(io.ErrUnexpectedEOF))
			}
			c := answer(t, kind, r)
			defer c.Close()
			var pcm []int16
			err := c.FetchSound(t.Context(), remote.Request{Method: http.MethodGet}, SoundOptions{Text: "Hello.", Rate: 24000},
				func(p []int16) error { pcm = append(pcm, p...); return nil })
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

func TestFramesOfMP3(t *testing.T) {
	for head, want := range map[string]int{
		"\xff\xfb\x90\x00": 417, "\xff\xfb\x92\x00": 418, "\xff\xf3\x40\xc4": 104, "\xff\xe3\x40\xc4": 208,
		"\xff\xff\xff\xff": 0, "\x00\x00\x00\x00": 0, "\xff\xfb\xf0\x00": 0, "\xff\xfb\x00\x00": 0, "\xff\xfb\x9c\x00": 0, "\xff\xfb": 0,
	} {
		if got := mpegFrameLength([]byte(head)); got != want {
			t.Errorf("%x: %d bytes, want %d", head, got, want)
		}
	}
}
