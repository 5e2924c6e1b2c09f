package device_test

import (
	"fmt"
	"testing"
	"time"

	"perch/device"
)

// TestNoCodeTwice: of a million, all different, in an order of the key's.
func TestNoCodeTwice(t *testing.T) {
	const many = 20_000
	c, other := device.NewCodes(device.Key("key")), device.NewCodes(device.Key("other"))
	seen, same, inOrder := map[string]bool{}, 0, 0
	last := ""
	now := time.Unix(0, 0)
	for n := range many {
		id := device.ID(fmt.Sprintf("%012x", 0x020000000000+n%100))
		code, ok := c.Give(id, device.NewClient("c"), "", now)
		foreign, _ := other.Give(id, device.NewClient("c"), "", now)
		if !ok || len(code) != 6 || seen[code] {
			t.Fatalf("code %d is %q (%v), seen %v", n, code, ok, seen[code])
		}
		seen[code] = true
		if code == foreign {
			same++
		}
		if code > last {
			inOrder++
		}
		last = code
		now = now.Add(device.CodeLife / 100)
	}
	if same > 10 || inOrder < many*4/10 || inOrder > many*6/10 {
		t.Errorf("%d codes are another key's, too; %d of %d are above the one before", same, inOrder, many)
	}
}

// TestManyStrangersAndTheirCodes: they get no more codes than may be guessed at, and the
// next robot one again when they have expired.
func TestManyStrangersAndTheirCodes(t *testing.T) {
	c := device.NewCodes(device.Key("key"))
	now, n := time.Unix(0, 0), 0
	for ; n < 1000; n++ {
		if _, ok := c.Give(device.ID(fmt.Sprint(n)), device.Client{}, "", now); !ok {
			break
		}
	}
	if n != 200 {
		t.Errorf("%d codes are good at a time", n)
	}
	if _, ok := c.Give("one", device.Client{}, "", now.Add(device.CodeLife)); !ok {
		t.Error("those that have expired are in the way")
	}
}
