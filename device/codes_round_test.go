package device

import (
	"errors"
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
	if id, _, err := c.look(first, now); err != nil || id != "a00000000000" {
		t.Errorf("the first is no longer good: %s (%v)", id, err)
	}
}

// TestGuessing: after ten wrong codes not even the right one is good, for a
// minute.
func TestGuessing(t *testing.T) {
	c, now := NewCodes(Key("key")), time.Unix(0, 0)
	right, _ := c.Give("one", Client{}, "", now)
	for n := range 10 {
		if _, _, err := c.look("wrong", now.Add(time.Duration(n)*time.Second)); !errors.Is(err, ErrCode) {
			t.Errorf("wrong code %d: %v", n, err)
		}
	}
	if _, _, err := c.look(right, now.Add(59*time.Second)); !errors.Is(err, ErrTries) {
		t.Errorf("the right one, too soon: %v", err)
	}
	if id, _, err := c.look(right, now.Add(60*time.Second)); err != nil || id != "one" {
		t.Errorf("a minute after the first wrong one: %v", err)
	}
}
