package wyoming

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	wire "perch/voice/wyoming"
)

// FuzzConnection sends arbitrary bytes and disconnects. The client must receive valid events only.
func FuzzConnection(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte(`{"type":"synthesize-start","data":{"voice":{"language":"en"}}}` + "\n" +
		`{"type":"synthesize-chunk","data":{"text":"One. Two"}}` + "\n" + `{"type":"synthesize-stop"}` + "\n"))
	f.Add([]byte(`{"type":"audio-chunk","data":{"rate":44100,"width":2,"channels":2},"payload_length":7}` + "\n\x00\x01\x02\x03\x04\x05\x06"))
	f.Add([]byte(`{"type":"ping","data_length":3}` + "\n{1}"))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		l := newPipes()
		run(t, all(), l)
		ours, theirs := net.Pipe()
		l.conns <- theirs
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = ours.Write(bytes)
			// The client reads responses for 5 ms, and then disconnects.
			_ = ours.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		}()
		r := wire.NewReader(ours, wire.Limits{})
		for {
			if _, err := r.Read(); err != nil {
				if errors.Is(err, wire.ErrFormat) {
					t.Errorf("we do not speak the protocol: %v", err)
				}
				if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
					_ = ours.Close()
				}
				break
			}
		}
		_ = ours.Close()
		<-sent
	})
}
