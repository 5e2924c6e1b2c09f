package door

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

// TestTriesAreBounded: who invents addresses fills no memory, and locks
// nobody out.
func TestTriesAreBounded(t *testing.T) {
	tries := newTries()
	address := func(n int) netip.Addr {
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(n))))
	}
	for n := range 3 * mostPeers {
		tries.failed(address(n))
		if len(tries.byPeer) > mostPeers {
			t.Fatalf("%d addresses are remembered", len(tries.byPeer))
		}
	}
	for n := range 3 * mostPeers {
		if tries.exhausted(address(n)) {
			t.Fatalf("address %d is locked out by one try", n)
		}
	}
}
