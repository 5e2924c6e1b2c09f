package broker

import (
	"bytes"
	"testing"
)

// TestCommandIsConfirmedAfterPerch tests that a command is confirmed to its publisher only after Perch has confirmed the
// command, and that other messages are confirmed at once.
func TestCommandIsConfirmedAfterPerch(t *testing.T) {
	b := started(t)
	perch := asPerch(t, b.address())
	defer perch.Close()
	for _, version := range []byte{4, 5} {
		var properties []byte
		if version == 5 {
			properties = []byte{0}
		}
		publisher := connect(t, b, version, "home-assistant")
		publisher.send(t, 0x32, text("perch/a0b1c2d3e4f4/say/set"), []byte{0, 7}, properties, []byte("hello"))
		given := perch.got(t, 0x32)
		if !bytes.HasSuffix(given, []byte("hello")) {
			t.Errorf("Perch is given %q", given)
		}
		publisher.send(t, 0x32, text("elsewhere"), []byte{0, 8}, properties, []byte("x"))
		if got := publisher.got(t, 0x40); got[1] != 8 {
			t.Errorf("version %d: what nobody has kept is confirmed: %x", version, got)
		}
		perch.send(t, 0x40, given[28:30])
		if got := publisher.got(t, 0x40); got[1] != 7 {
			t.Errorf("version %d: confirmed is %x", version, got)
		}
	}
	b.confirmations.mu.Lock()
	defer b.confirmations.mu.Unlock()
	if len(b.confirmations.waiting) != 0 {
		t.Errorf("of what was confirmed is kept: %v", b.confirmations.waiting)
	}
}

// TestCommandWithoutPerchIsNotConfirmed tests that a command that Perch has not confirmed is still unconfirmed when the
// broker ends, so that its publisher has to publish it again.
func TestCommandWithoutPerchIsNotConfirmed(t *testing.T) {
	b := listening(t)
	perch := asPerch(t, b.address())
	publisher := connect(t, b, 4, "home-assistant")
	publisher.send(t, 0x32, text("perch/a0b1c2d3e4f4/say/set"), []byte{0, 7}, []byte("hello"))
	perch.got(t, 0x32)
	perch.Close()
	publisher.ping(t) // still connected, and nothing was confirmed
	b.close()
	for {
		kind, body, err := publisher.next()
		if err != nil {
			return
		}
		if kind == 0x40 {
			t.Errorf("%x is confirmed", body)
		}
	}
}

// TestOnlyPerchConfirms tests that the confirmation by another subscriber, whose client ID is similar to Perch's, does not
// confirm a command to its publisher.
func TestOnlyPerchConfirms(t *testing.T) {
	b := started(t)
	perch := asPerch(t, b.address())
	dashboard := connect(t, b, 4, "perch-dashboard")
	dashboard.subscribe(t, nil, "#", 1)
	publisher := connect(t, b, 4, "home-assistant")
	publisher.send(t, 0x32, text("perch/a0b1c2d3e4f4/say/set"), []byte{0, 7}, []byte("hello"))
	taken := dashboard.got(t, 0x32)
	dashboard.send(t, 0x40, taken[28:30])
	dashboard.ping(t) // the broker has received the confirmation
	publisher.ping(t) // and nothing was confirmed before this
	given := perch.got(t, 0x32)
	perch.send(t, 0x40, given[28:30])
	if got := publisher.got(t, 0x40); got[1] != 7 {
		t.Errorf("confirmed is %x", got)
	}
}

// TestPublishingConfirmsNothing tests that a message that Perch publishes does not confirm a command, although its packet
// ID is the packet ID of the command.
func TestPublishingConfirmsNothing(t *testing.T) {
	b := started(t)
	perch := asPerch(t, b.address())
	publisher := connect(t, b, 4, "home-assistant")
	publisher.send(t, 0x32, text("perch/a0b1c2d3e4f4/say/set"), []byte{0, 7}, []byte("hello"))
	given := perch.got(t, 0x32)
	perch.send(t, 0x32, text("perch/bridge/status"), given[28:30], []byte("online"))
	if got := perch.got(t, 0x40); !bytes.Equal(got, given[28:30]) {
		t.Errorf("what it has published is confirmed as %x", got)
	}
	perch.ping(t) // the broker has handled all packets
	b.confirmations.mu.Lock()
	if n := len(b.confirmations.waiting); n != 1 {
		t.Errorf("%d commands wait to be confirmed", n)
	}
	b.confirmations.mu.Unlock()
	perch.send(t, 0x40, given[28:30])
	if got := publisher.got(t, 0x40); got[1] != 7 {
		t.Errorf("confirmed is %x", got)
	}
}

// TestCommandsKeepTheirOrder tests that the commands of one publisher stay in order and reach all subscribers.
func TestCommandsKeepTheirOrder(t *testing.T) {
	b := started(t)
	perch := asPerch(t, b.address())
	watcher := connect(t, b, 4, "watcher")
	watcher.subscribe(t, nil, "#", 0)
	perch.confirms(t)
	publisher := connect(t, b, 4, "home-assistant")
	for n := range byte(50) {
		publisher.send(t, 0x32, text("perch/a0b1c2d3e4f4/say/set"), []byte{0, n + 1}, []byte{n})
	}
	for n := range byte(50) {
		if got := watcher.got(t, 0x30); got[len(got)-1] != n {
			t.Fatalf("the %d. is %d", n, got[len(got)-1])
		}
	}
	confirmed := map[byte]bool{}
	for range 50 {
		confirmed[publisher.got(t, 0x40)[1]] = true
	}
	if len(confirmed) != 50 {
		t.Errorf("%d are confirmed", len(confirmed))
	}
}

// TestCommandsAreKnown tests which topics are topics of commands.
func TestCommandsAreKnown(t *testing.T) {
	g := &confirmations{base: "a/b"}
	for topic, is := range map[string]bool{
		"a/b/r/say/set": true, "a/b/bridge/request/notify": true, "a/b/r/say": false, "a/b/set": false, "a/r/say/set": false,
		"a/b/bridge/request/restart": false, "a/b/r/x/y/set": false, "": false,
	} {
		if g.isCommand(topic) != is {
			t.Errorf("%q: %t", topic, !is)
		}
	}
}
