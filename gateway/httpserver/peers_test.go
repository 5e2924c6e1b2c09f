package httpserver

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

func numbered(n int) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(n))))
}

// TestTriesAreBounded checks that the number of limiters is bounded, and that many addresses lock no other out.
func TestTriesAreBounded(t *testing.T) {
	tries := newPeerLimiters(tryEvery, triesAtOnce)
	for n := range 3 * maxPeers {
		tries.allow(numbered(n))
		if kept := len(tries.byPeer); kept > maxPeers {
			t.Fatalf("%d addresses are remembered", kept)
		}
	}
	inNetworks := 0
	for _, l := range tries.byNetwork {
		inNetworks += l.Len()
	}
	if kept := len(tries.byPeer); kept != maxPeers || inNetworks != kept {
		t.Errorf("%d addresses are remembered, and %d in their networks", kept, inNetworks)
	}
	for n := range 3 * maxPeers {
		if tries.exhausted(numbered(n)) {
			t.Fatalf("address %d is locked out by one try", n)
		}
	}
}

// TestManyAddressesKeepOtherTries checks that a peer that has sent too many wrong tokens stays refused, however many
// addresses of other networks send tokens, and that within a network the least recently used limiters are removed first.
func TestManyAddressesKeepOtherTries(t *testing.T) {
	tries := newPeerLimiters(tryEvery, triesAtOnce)
	guessed := []netip.Addr{netip.MustParseAddr("192.168.1.66"), netip.MustParseAddr("2001:db8::")}
	exhaust := func(from netip.Addr) {
		for range triesAtOnce {
			tries.allow(from)
		}
	}
	for _, from := range guessed {
		exhaust(from)
	}
	for n := range 20 * maxPeers {
		tries.allow(numbered(10<<24 + n))
		network := netip.MustParseAddr("2001:db8:1::").As16()
		binary.BigEndian.PutUint16(network[6:], uint16(n))
		tries.allow(netip.AddrFrom16(network))
	}
	for _, from := range guessed {
		if !tries.exhausted(from) {
			t.Errorf("the tries of %s are forgotten", from)
		}
	}
	latest := numbered(10<<24 + 20*maxPeers)
	exhaust(latest)
	for n := range 5 {
		tries.allow(numbered(10<<24 + 20*maxPeers + 1 + n))
	}
	if !tries.exhausted(latest) {
		t.Error("the latest tries are forgotten before older ones")
	}
}
