package openai

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"perch/voice"
	"perch/voice/voicetest"
)

// TestHostileSynthesizers checks that a malicious response takes a bounded time,
// results in a bounded sound, and causes an error of one sentence.
func TestHostileSynthesizers(t *testing.T) {
	head := func(kind, more string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\n" + more + "Transfer-Encoding: chunked\r\n\r\n"
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(raw(ramp(24000)))
	_ = z.Close()
	gives := func(head string, body []byte) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = io.WriteString(c, head)
			_, _ = c.Write(chunk(body))
			_, _ = io.WriteString(c, "0\r\n\r\n")
		}
	}
	trickles := func(begin string, first []byte) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = io.WriteString(c, begin)
			for body := append(first, make([]byte, 100000)...); len(body) > 0; body = body[1:] {
				if _, err := c.Write(chunk(body[:1])); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}
	}
	altered := func(at int, b ...byte) []byte {
		w := voicetest.WAV(24000, ramp(2400))
		copy(w[at:], b)
		return w
	}
	for name, test := range map[string]struct {
		script func(net.Conn)
		want   string
		sound  time.Duration // maximum duration of the sound
		within time.Duration // maximum time of the call
	}{
		"a byte a second":        {trickles(soundHead, nil), "slower than it is played", time.Second, time.Minute},
		"a WAV, a byte a second": {trickles(head("audio/wav", ""), voicetest.WAV(24000, nil)), "slower than it is played", time.Second, time.Minute},
		"endless": {func(c net.Conn) {
			_, _ = io.WriteString(c, soundHead)
			for second := chunk(make([]byte, 48000)); ; {
				if _, err := c.Write(second); err != nil {
					return
				}
			}
		}, "does not stop speaking", 13 * time.Second, time.Second},
		"endless, just fast enough": {func(c net.Conn) {
			_, _ = io.WriteString(c, soundHead)
			for second := chunk(make([]byte, 48000)); ; time.Sleep(5 * time.Second) {
				if _, err := c.Write(second); err != nil {
					return
				}
			}
		}, "does not stop speaking", 13 * time.Second, 70 * time.Second},
		"gzip, as it says":       {gives(head("audio/pcm", "Content-Encoding: gzip\r\n"), packed.Bytes()), "gzip", 0, time.Second},
		"gzip, unsaid":           {gives(soundHead, packed.Bytes()), "gzip", 0, time.Second},
		"an encoding of its own": {gives(head("audio/pcm", "Content-Encoding: "+canary+"\r\n"), packed.Bytes()), "Content-Encoding", 0, time.Second},
		"a rate of 191 999 Hz":   {gives(head("audio/pcm;rate=191999", ""), raw(ramp(240))), "191999 samples a second", 0, time.Second},
		"a rate of 23 999 Hz":    {gives(head("audio/pcm;rate=23999", ""), raw(ramp(240))), "23999 samples a second", 0, time.Second},
		"a rate of 1 Hz":         {gives(head("audio/pcm;rate=1", ""), raw(ramp(240))), "1 samples a second", 0, time.Second},
		"six channels":           {gives(head("audio/pcm;channels=6", ""), raw(ramp(240))), "6 channels", 0, time.Second},
		"a WAV of 191 999 Hz":    {gives(head("audio/wav", ""), voicetest.WAV(191999, ramp(240))), "WAV that cannot be read", 0, time.Second},
		"a WAV of 47 999 Hz":     {gives(head("audio/wav", ""), voicetest.WAV(47999, ramp(240))), "WAV that cannot be read", 0, time.Second},
		"a WAV of chunks without end": {func(c net.Conn) {
			_, _ = io.WriteString(c, head("audio/wav", ""))
			_, err := c.Write(chunk([]byte("RIFF\xff\xff\xff\xffWAVE")))
			for n, piece := 0, chunk(bytes.Repeat([]byte("LIST\x00\x00\x00\x00"), 1000)); err == nil && n < 10000; n++ {
				_, err = c.Write(piece)
			}
		}, "WAV that cannot be read", 0, time.Second},
		"a WAV of ADPCM":      {gives(head("audio/wav", ""), altered(20, 2, 0)), "ADPCM", 0, time.Second},
		"a WAV of 6 channels": {gives(head("audio/wav", ""), altered(22, 6)), "WAV that cannot be read", 0, time.Second},
		"a WAV of 12 bits":    {gives(head("audio/wav", ""), altered(34, 12)), "WAV that cannot be read", 0, time.Second},
		"a picture":           {gives(head("image/png", ""), raw(ramp(240))), "image/png in place of sound", 0, time.Second},
		"an archive":          {gives(head("application/gzip", ""), raw(ramp(240))), "application/gzip in place of sound", 0, time.Second},
		"Opus":                {gives(head("audio/opus", ""), raw(ramp(240))), "opus", 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipes(func(c net.Conn, _ []byte) { test.script(c) })
				s := synthesizer(t, Options{URL: "http://127.0.0.1/v1", Key: canary, dial: p.dial})
				began := time.Now()
				pcm, err := voicetest.SynthesizeHello(t, s)
				voicetest.Sentence(t, err, test.want)
				if sound := time.Duration(len(pcm)) * time.Second / voice.SpeakerRate; sound > test.sound {
					t.Errorf("%s of it are played", sound)
				}
				if took := time.Since(began); took > test.within {
					t.Errorf("it took %s", took)
				}
				s.Close()
				<-p.closed
			})
		})
	}
}

// TestSlowServer checks that a server may take six times as long as the duration of its sound.
func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes(func(c net.Conn, _ []byte) {
			_, _ = io.WriteString(c, soundHead)
			for range 100 {
				_, _ = c.Write(chunk(raw(ramp(2400))))
				time.Sleep(600 * time.Millisecond)
			}
			_, _ = io.WriteString(c, "0\r\n\r\n")
		})
		pcm, err := voicetest.SynthesizeHello(t, synthesizer(t, Options{URL: "http://127.0.0.1/v1", dial: p.dial}))
		if err != nil || len(pcm) != 240000 {
			t.Errorf("%d samples, %v", len(pcm), err)
		}
	})
}

// TestCompressionIsNotRequested checks that requests ask for an uncompressed response, which can be played
// while it arrives.
func TestCompressionIsNotRequested(t *testing.T) {
	asked := make(chan string, 1)
	url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Accept-Encoding")
		w.Header().Set("Content-Type", "audio/pcm")
		_, _ = w.Write(raw(ramp(100)))
	})
	if _, err := voicetest.SynthesizeHello(t, synthesizer(t, Options{URL: url})); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != "identity" {
		t.Errorf("Accept-Encoding is %q", got)
	}
}
