package device_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

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

// TestCodes against a model: a code is good for the robot it was given to, in
// time, and once.
func TestCodes(t *testing.T) {
	type given struct {
		id     device.ID
		client device.Client
		until  time.Time
	}
	rapid.Check(t, func(t *rapid.T) {
		c := device.NewCodes(device.Key("key"))
		now := time.Unix(0, 0)
		live, ever, current := map[string]given{}, []string{"000000"}, map[device.ID]string{}
		var wrong []time.Time
		for range 80 {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second, time.Minute, 6 * time.Minute}).Draw(t, "pause"))
			if rapid.Bool().Draw(t, "give") {
				id, client := device.ID(fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "robot"))),
					device.NewClient(fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "client")))
				code, ok := c.Give(id, client, "", now)
				g, known := live[code]
				switch {
				case !ok:
					t.Fatal("no code")
				case known && (g.id != id || g.client != client || g.until.Sub(now) <= device.CodeLife/2 || current[id] != code):
					t.Fatalf("%s again, for %s: was %+v", code, id, g)
				case !known:
					if old := live[current[id]]; old.client == client && old.until.Sub(now) > device.CodeLife/2 {
						t.Fatalf("%s is given another code too early", id)
					}
					delete(live, current[id])
					live[code], current[id] = given{id, client, now.Add(device.CodeLife)}, code
					ever = append(ever, code)
				}
				continue
			}
			code := rapid.SampledFrom(ever).Draw(t, "code")
			for len(wrong) > 0 && now.Sub(wrong[0]) >= time.Minute {
				wrong = wrong[1:]
			}
			g, good := live[code]
			good = good && now.Before(g.until)
			id, client, err := c.Redeem(code, now)
			switch {
			case len(wrong) >= 10:
				if !errors.Is(err, device.ErrTries) {
					t.Fatalf("after ten wrong ones: %v", err)
				}
			case good:
				if err != nil || id != g.id || client != g.client {
					t.Fatalf("%s is %s %+v (%v), want %+v", code, id, client, err, g)
				}
				delete(live, code)
				delete(current, id)
			default:
				wrong = append(wrong, now)
				if !errors.Is(err, device.ErrCode) {
					t.Fatalf("%s: %v", code, err)
				}
			}
		}
	})
}

// TestGuessing: after ten wrong codes not even the right one is good, for a
// minute.
func TestGuessing(t *testing.T) {
	c := device.NewCodes(device.Key("key"))
	now := time.Unix(0, 0)
	right, _ := c.Give("one", device.Client{}, "", now)
	for n := range 10 {
		if _, _, err := c.Redeem("wrong", now.Add(time.Duration(n)*time.Second)); !errors.Is(err, device.ErrCode) {
			t.Errorf("wrong code %d: %v", n, err)
		}
	}
	if _, _, err := c.Redeem(right, now.Add(59*time.Second)); !errors.Is(err, device.ErrTries) {
		t.Errorf("the right one, too soon: %v", err)
	}
	if id, _, err := c.Redeem(right, now.Add(60*time.Second)); err != nil || id != "one" {
		t.Errorf("a minute after the first wrong one: %v", err)
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
