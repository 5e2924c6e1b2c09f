package httpserver

import (
	"errors"
	"net/netip"
	"testing"
)

// TestConnectionLimit checks both limits, and that each released connection makes room for exactly one other.
func TestConnectionLimit(t *testing.T) {
	l := NewConnectionLimit(3, 2)
	one, two := netip.MustParseAddr("192.168.1.5"), netip.MustParseAddr("192.168.1.6")
	var releases []func()
	for i, c := range []struct {
		peer netip.Addr
		want error
	}{{one, nil}, {one, nil}, {one, ErrTooManyOfPeer}, {two, nil}, {two, ErrTooMany}, {one, ErrTooMany}, {netip.Addr{}, ErrTooMany}} {
		release, err := l.Acquire(c.peer)
		if !errors.Is(err, c.want) || (release == nil) != (c.want != nil) {
			t.Errorf("number %d: %v, want %v", i+1, err, c.want)
		}
		if release != nil {
			releases = append(releases, release)
		}
	}
	if open, peers := l.Open(); open != 3 || peers != 2 {
		t.Errorf("%d are open, of %d peers", open, peers)
	}
	releases[0]()
	releases[0]()
	if open, _ := l.Open(); open != 2 {
		t.Errorf("one was closed twice, and %d are open", open)
	}
	if again, err := l.Acquire(one); err != nil {
		t.Error(err)
	} else {
		again()
	}
	for _, release := range releases {
		release()
	}
	if open, peers := l.Open(); open != 0 || peers != 0 || len(l.byPeer) != 0 {
		t.Errorf("all are closed, and %d are open, of %d peers", open, peers)
	}
}
