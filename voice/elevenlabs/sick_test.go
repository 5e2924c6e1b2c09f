package elevenlabs

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"perch/voice"
)

// TestSickSynthesizers: what a server does with a sentence costs a bounded time
// and a bounded sound, and its error is one sentence.
func TestSickSynthesizers(t *testing.T) {
	sends := func(head string, pause time.Duration, size int) func(net.Conn) {
		return func(c net.Conn) {
			_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%sTransfer-Encoding: chunked\r\n\r\n", head)
			for ; err == nil; time.Sleep(pause) {
				_, err = fmt.Fprintf(c, "%x\r\n%s\r\n", size, make([]byte, size))
			}
		}
	}
	for name, test := range map[string]struct {
		script func(net.Conn)
		want   string
		sound  time.Duration // at the most
		within time.Duration
	}{
		"a byte a second": {sends("Content-Type: audio/pcm\r\n", time.Second, 1), "slower than it is played", time.Second, time.Minute},
		"endless":         {sends("Content-Type: audio/pcm\r\n", 0, 48000), "does not stop speaking", 13 * time.Second, time.Second},
		"gzip":            {sends("Content-Type: audio/pcm\r\nContent-Encoding: gzip\r\n", 0, 480), "gzip", 0, time.Second},
		"an odd rate":     {sends("Content-Type: audio/pcm;rate=191999\r\n", 0, 480), "191999 samples a second", 0, time.Second},
		"a picture":       {sends("Content-Type: image/png\r\n", 0, 480), "image/png in place of sound", 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan struct{})
				e := engine(t, Options{URL: "http://127.0.0.1/v1", dial: peer(func(c net.Conn) { test.script(c); close(over) })})
				began := time.Now()
				pcm, err := synthesized(t, e)
				isSentence(t, err, test.want)
				if sound := time.Duration(len(pcm)) * time.Second / voice.SpeakerRate; sound > test.sound {
					t.Errorf("%s of it are played", sound)
				}
				if took := time.Since(began); took > test.within {
					t.Errorf("it took %s", took)
				}
				e.Close()
				<-over
			})
		})
	}
}
