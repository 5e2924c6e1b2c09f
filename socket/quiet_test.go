package socket_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"perch/socket"
)

// TestAQuietSideIsGone: one whose network went away sends no FIN.
func TestAQuietSideIsGone(t *testing.T) {
	appliance, _, _ := raw(t, socket.Options{Quiet: 50 * time.Millisecond})
	if _, _, err := appliance.Receive(); err != io.EOF {
		t.Errorf("received with %v, want io.EOF", err)
	}
}

// TestAnAnswerToAPingIsASignOfLife, though it is no message.
func TestAnAnswerToAPingIsASignOfLife(t *testing.T) {
	const quiet = 200 * time.Millisecond
	appliance, peer, _ := raw(t, socket.Options{MaxMessage: 100, Quiet: quiet})
	pings := make(chan struct{}, 100)
	answer := peer.PingHandler()
	peer.SetPingHandler(func(data string) error {
		err := answer(data)
		pings <- struct{}{}
		return err
	})
	go func() { _, _, _ = peer.ReadMessage() }() // which answers pings until the end
	ended := make(chan error, 1)
	go func() {
		_, _, err := appliance.Receive()
		ended <- err
	}()
	began := time.Now()
	for time.Since(began) < 2*quiet {
		must(t, appliance.Ping())
		<-pings
		select {
		case err := <-ended:
			t.Fatalf("ended after %v (%v)", time.Since(began), err)
		case <-time.After(quiet / 10):
		}
	}
	must(t, peer.WriteMessage(websocket.TextMessage, []byte("here")))
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWhoSendsTooMuchWaits: messages beyond the limit are taken later, none is
// lost, and a close from here waits for none.
func TestWhoSendsTooMuchWaits(t *testing.T) {
	appliance, peer, _ := raw(t, socket.Options{MaxMessage: 100, PerSecond: 100})
	for n := range 1000 {
		must(t, peer.WriteMessage(websocket.BinaryMessage, []byte{byte(n)}))
	}
	began := time.Now()
	for n := range 120 {
		if _, data, err := appliance.Receive(); err != nil || data[0] != byte(n) {
			t.Fatalf("message %d is %v, %v", n, data, err)
		}
		if n == 90 {
			if took := time.Since(began); took > 800*time.Millisecond { // 900 ms at that pace
				t.Errorf("the first 90 took %v", took)
			}
		}
	}
	if took := time.Since(began); took < 150*time.Millisecond || took > 10*time.Second {
		t.Errorf("120 messages at 100 a second took %v", took)
	}
	appliance.Drop()
	began = time.Now()
	for range 881 {
		if _, _, err := appliance.Receive(); err != nil {
			break
		}
	}
	if took := time.Since(began); took > 5*time.Second { // 8.8 s at that pace
		t.Errorf("after its end it went on for %v", took)
	}
}

// TestSubprotocols: the one that both know is named, and no other.
func TestSubprotocols(t *testing.T) {
	url, accepted := listen(t, socket.Options{Subprotocols: []string{"vtuber.v1"}})
	for asked, want := range map[string]string{"": "", "other": "", "vtuber.v1": "vtuber.v1", "bearer.c2VjcmV0, vtuber.v1": "vtuber.v1",
		"VTUBER.V1": ""} {
		header := http.Header{}
		if asked != "" {
			header.Set("Sec-WebSocket-Protocol", asked)
		}
		peer, answer, err := websocket.DefaultDialer.DialContext(t.Context(), url, header)
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.Header.Get("Sec-WebSocket-Protocol"); got != want {
			t.Errorf("%q is answered with %q", asked, got)
		}
		_ = answer.Body.Close() // an upgrade has none
		_ = peer.Close()
		(<-accepted).Drop()
	}
}
