package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"perch/event"
	"perch/must"
)

// relay forwards connections to a server, until it is cut.
type relay struct {
	net.Listener
	to    string
	conns sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool
	down bool
}

// relayTo starts a relay to the URL server that runs until the test ends, and returns the relay and its URL.
func relayTo(t *testing.T, server string) (*relay, string) {
	t.Helper()
	at, err := url.Parse(server)
	must.Succeed(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	r := &relay{Listener: l, to: at.Host, open: map[net.Conn]bool{}}
	r.conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.conns.Go(func() { r.pass(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.cut()
		r.conns.Wait()
	})
	return r, "http://" + l.Addr().String() + "/"
}

func (r *relay) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", r.to)
	if err != nil || !r.keep(from, to) {
		return
	}
	defer to.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(from, to)
		_ = from.Close()
	})
	_, _ = io.Copy(to, from)
	_ = to.Close()
	back.Wait()
}

// keep records open connections. It closes them and returns false if the relay is cut.
func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		if r.down {
			_ = c.Close()
		}
		r.open[c] = true
	}
	return !r.down
}

// cut closes all connections, and makes the relay close new ones until mend is called.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = true
	for c := range r.open {
		_ = c.Close()
	}
	clear(r.open)
}

func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = false
}

// seeCut checks that a page whose connection is lost says so and reconnects, and that it then has shown every event once
// and in order.
func seeCut(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	r, at := relayTo(t, h.LocalURL())
	b := c.browse(t)
	lost := []string{"ERR_EMPTY_RESPONSE", "ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_SOCKET_NOT_CONNECTED"}
	b.allow(lost...)
	b.open(at + "#/sensed")
	b.until("see.one('p-shell')?.link === 'fine' && see.has('main > p-sensed') && !see.has('main >>> .loading')")
	sensed := 0
	sense := func(n int) {
		for range n {
			sensed++
			h.Bus.Publish(kitchen, "", event.Perceived{Name: "passed_by", Data: json.RawMessage(fmt.Sprintf(`{"number":%d}`, sensed))})
		}
	}
	rows := func() {
		t.Helper()
		b.until(fmt.Sprintf("see.all('[data-test=sensed]').length >= %d", sensed))
		got := value[[]int](b, `see.all("[data-test=sensed]").map((e) => Number(/number: (\d+)/.exec(see.text(e))[1]))`)
		for i, n := range got {
			if n != sensed-i || len(got) != sensed {
				t.Fatalf("shown are %d, the newest first, of %d", got, sensed)
			}
		}
	}
	// The stream begins some time after the view.
	h.Eventually("the first is shown", func() bool {
		sense(1)
		return value[bool](b, "see.has('[data-test=sensed]')")
	})
	sensed -= value[int](b, `Number(/number: (\d+)/.exec(see.text(see.all("[data-test=sensed]").at(-1)))[1])`) - 1
	sense(5)
	for range 2 {
		r.cut()
		b.says("[data-test=link]", "lost")
		b.axe("a lost connection")
		sense(5)
		r.mend()
		b.until("see.one('p-shell').link !== 'lost'")
		sense(5)
	}
	rows()

	// A hidden page has no connection, and reconnects when it becomes visible.
	seen := c.browse(t)
	seen.allow(lost...)
	seen.open(at)
	seen.until("see.one('p-shell')?.link === 'fine' && see.has('main > p-home') && !see.has('main >>> .loading')")
	value[bool](b, `window.dispatchEvent(new PageTransitionEvent("pagehide", {persisted: true}))`)
	r.cut()
	seen.says("[data-test=link]", "lost")
	sense(5)
	if link := value[string](b, "see.one('p-shell').link"); link == "lost" {
		t.Error("a hidden page says that its connection is lost")
	}
	r.mend()
	value[bool](b, `window.dispatchEvent(new PageTransitionEvent("pageshow", {persisted: true}))`)
	sense(5)
	rows()
}

// seeAway checks that a view that was opened while Perch could not be reached is filled once Perch is back, whether or not
// the page had loaded the script of the view before.
func seeAway(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	r, at := relayTo(t, h.LocalURL())
	b := c.browse(t)
	b.allow("ERR_EMPTY_RESPONSE", "ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_SOCKET_NOT_CONNECTED", "dynamically imported module")
	b.open(at + "#/memory")
	b.sees("main > p-memory")
	b.view("sensed", "p-sensed")
	b.until("see.one('p-shell')?.link === 'fine'")
	for hash, broken := range map[string]string{"memory": "main > p-memory >>> [data-test=failed]", "turns": "main > p"} {
		r.cut()
		b.says("[data-test=link]", "lost")
		value[bool](b, "(location.hash = '#/"+hash+"', true)")
		b.sees(broken)
		b.axe("a view that was opened while Perch is away")
		r.mend()
		b.until("see.has('main > p-" + hash + "') && !see.has('main >>> .loading') && !see.has('main >>> [data-test=failed]') && see.one('p-shell').link !== 'lost'")
	}
}
