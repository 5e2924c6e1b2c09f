package device

import (
	"fmt"
	"testing"
	"time"
)

// TestCodesBeginAnew: after a million there are others, in another order, and
// none that is still good is given twice.
func TestCodesBeginAnew(t *testing.T) {
	c, now := NewCodes(Key("key")), time.Unix(0, 0)
	first, _ := c.Give("a00000000000", NewClient("one"), "", now)
	c.given = codes - 1
	seen := map[string]bool{first: true}
	for n := range 100 {
		code, ok := c.Give(ID(fmt.Sprintf("a0000000%04x", n+1)), NewClient("one"), "", now)
		if !ok || len(code) != 6 || seen[code] {
			t.Fatalf("code %d is %q (%t), seen %t", n, code, ok, seen[code])
		}
		seen[code] = true
	}
	if id, _, err := c.Redeem(first, now); err != nil || id != "a00000000000" {
		t.Errorf("the first is no longer good: %s (%v)", id, err)
	}
}
