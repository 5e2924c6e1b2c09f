package socket_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"perch/must"
	"perch/socket"
)

// TestAQuietSideIsGone checks Options.Quiet: a robot that has lost its network sends no FIN.
func TestAQuietSideIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quiet = 50 * time.Second
		appliance, _, _ := piped(t, socket.Options{Quiet: quiet})
		began := time.Now()
		if _, _, err := appliance.Receive(); !errors.Is(err, socket.ErrQuiet) || !errors.Is(err, io.EOF) || time.Since(began) != quiet {
			t.Errorf("received with %v after %v, want ErrQuiet after %v", err, time.Since(began), quiet)
		}
	})
}

// TestAnAnswerToAPingIsASignOfLife checks that a pong extends the time limit of Options.Quiet.
func TestAnAnswerToAPingIsASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quiet = 50 * time.Second
		appliance, peer, _ := piped(t, socket.Options{MaxMessage: 100, Quiet: quiet})
		go func() { _, _, _ = peer.ReadMessage() }() // responds to pings
		ended := make(chan error, 1)
		go func() {
			_, _, err := appliance.Receive()
			ended <- err
		}()
		for n := range 5 {
			must.Succeed(t, appliance.Ping())
			time.Sleep(quiet - 1)
			if len(ended) > 0 {
				t.Fatalf("ended after %d pings (%v)", n+1, <-ended)
			}
		}
		must.Succeed(t, appliance.Ping())
		synctest.Wait() // until the pong has arrived
		must.Succeed(t, peer.WriteMessage(websocket.TextMessage, []byte("here")))
		must.Succeed(t, <-ended)
	})
}

// TestMessagesAreReadAtALimitedRate checks that messages beyond Options.PerSecond are delayed but not lost, and that Drop
// ends the delay.
func TestMessagesAreReadAtALimitedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		appliance, peer, _ := piped(t, socket.Options{MaxMessage: 100, PerSecond: 100})
		go func() {
			for n := range 1000 {
				if peer.WriteMessage(websocket.BinaryMessage, []byte{byte(n)}) != nil {
					return // the connection was closed
				}
			}
		}()
		began := time.Now()
		for n := range 120 {
			if _, data, err := appliance.Receive(); err != nil || data[0] != byte(n) {
				t.Fatalf("message %d is %v, %v", n, data, err)
			}
			if n == 90 && time.Since(began) != 0 {
				t.Errorf("the first 90 took %v", time.Since(began))
			}
		}
		if took := time.Since(began); took < 190*time.Millisecond || took > 210*time.Millisecond {
			t.Errorf("120 messages at 100 a second took %v", took)
		}
		appliance.Drop()
		began = time.Now()
		for range 881 {
			if _, _, err := appliance.Receive(); err != nil {
				break
			}
		}
		if took := time.Since(began); took != 0 { // with the delay it would take 8.8 s
			t.Errorf("after its end it went on for %v", took)
		}
	})
}

// TestSubprotocols checks that Accept selects a subprotocol only if the client and the server both support it.
func TestSubprotocols(t *testing.T) {
	url, accepted := listen(t, socket.Options{Subprotocols: []string{"vtuber.v1"}})
	for asked, want := range map[string]string{"": "", "other": "", "vtuber.v1": "vtuber.v1", "bearer.c2VjcmV0, vtuber.v1": "vtuber.v1",
		"VTUBER.V1": ""} {
		header := http.Header{}
		if asked != "" {
			header.Set("Sec-WebSocket-Protocol", asked)
		}
		peer, answer, err := websocket.DefaultDialer.DialContext(t.Context(), url, header)
		must.Succeed(t, err)
		if got := answer.Header.Get("Sec-WebSocket-Protocol"); got != want {
			t.Errorf("%q is answered with %q", asked, got)
		}
		_ = answer.Body.Close() // the body is empty
		_ = peer.Close()
		(<-accepted).Drop()
	}
}
