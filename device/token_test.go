package device_test

import (
	"errors"
	"strings"
	"testing"

	"perch/device"
	"perch/must"
)

var key = device.Key("0123456789abcdef0123456789abcdef")

const (
	robotA device.ID = "a0b1c2d3e4f5"
	robotB device.ID = "a0b1c2d3e4f6"
)

// TestTokensDiffer: robots have different tokens, even if the concatenated parts of their identities are equal.
func TestTokensDiffer(t *testing.T) {
	type robot struct {
		key    string
		id     device.ID
		client device.Client
		epoch  int
	}
	seen := map[string]robot{}
	for _, r := range []robot{
		{"k", robotA, device.NewClient("uuid"), 0},
		{"other", robotA, device.NewClient("uuid"), 0},
		{"k", robotB, device.NewClient("uuid"), 0},
		{"k", robotA, device.NewClient("uuie"), 0},
		{"k", robotA, device.NewClient("uuid"), 1},
		{"k", robotA, device.NewClient(""), 0},
		{"k", robotA, device.Client{Sent: true}, 0},
		{"k", robotA, device.NewClient("uuid\n1"), 0},
		{"k", robotA, device.NewClient("uuid\n"), 10},
		{"k", robotA, device.NewClient("uuid"), 10},
		{"k", robotA + "\ntrue 4 uuid", device.NewClient(""), 0},
	} {
		token := device.Key(r.key).Token(r.id, r.client, r.epoch)
		if other, taken := seen[token]; taken {
			t.Errorf("%+v and %+v have the same token", r, other)
		}
		seen[token] = r
		if again := device.Key(r.key).Token(r.id, r.client, r.epoch); again != token {
			t.Errorf("%+v has the tokens %s and %s", r, token, again)
		}
	}
}

// TestTokenSurvivesTheFirmware: the firmware does not send "Bearer " before a token that contains a space, and
// its flash holds strings of less than 4000 bytes.
func TestTokenSurvivesTheFirmware(t *testing.T) {
	token := key.Token(robotA, device.NewClient("uuid"), 0)
	if len(token) != 43 || strings.ContainsAny(token, " .:/+=\"\\") {
		t.Errorf("token %q", token)
	}
}

func TestNewClient(t *testing.T) {
	if c := device.NewClient(""); c.Sent || c.ID != "" {
		t.Errorf("no header is %+v", c)
	}
	if c := device.NewClient("3f1c"); !c.Sent || c.ID != "3f1c" {
		t.Errorf("a header is %+v", c)
	}
	if c := device.NewClient(strings.Repeat("x", 16<<10)); len(c.ID) != 128 {
		t.Errorf("a Client-Id of 16 kB is kept with %d bytes", len(c.ID))
	}
}

// TestTokenForItsOwner: Registry.Token returns the token of an adopted robot only for the client with which the
// robot was adopted.
func TestTokenForItsOwner(t *testing.T) {
	r := device.NewRegistry(key, device.AdoptOpen, newTable())
	if _, _, err := r.Token(robotA, device.Client{}); !errors.Is(err, device.ErrUnknownRobot) {
		t.Errorf("of a robot that never was here: %v", err)
	}
	_, a := r.CheckIn(from(robotA, "one"), noon)
	if _, token, err := r.Token(robotA, device.NewClient("one")); !errors.Is(err, device.ErrNotAdopted) || token != "" {
		t.Errorf("of a stranger: %q, %v", token, err)
	}
	adopt(t, r, robotA)
	for _, c := range []device.Client{device.NewClient("one"), {}} { // the zero Client matches any
		robot, token, err := r.Token(robotA, c)
		if err != nil || token != a.Token || robot.Client != device.NewClient("one") {
			t.Errorf("%+v: %q of %+v, %v", c, token, robot, err)
		}
	}
	r.CheckIn(from(robotA, "two"), noon) // has a claim
	if _, token, err := r.Token(robotA, device.NewClient("two")); !errors.Is(err, device.ErrOtherClient) || token != "" {
		t.Errorf("of another client: %q, %v", token, err)
	}
	must.Value(r.Replace(robotA, ""))(t)
	if _, token, err := r.Token(robotA, device.NewClient("two")); !errors.Is(err, device.ErrNotAdopted) || token != "" {
		t.Errorf("of one that was let in and not adopted: %q, %v", token, err)
	}
	adopt(t, r, robotA)
	if _, token, err := r.Token(robotA, device.NewClient("two")); err != nil || token == a.Token {
		t.Errorf("after it: %q, %v", token, err)
	} else if _, err := r.Admit(robotA, device.NewClient("two"), token); err != nil {
		t.Errorf("it does not open: %v", err)
	}
	must.Succeed(t, r.Forget(robotA))
	if _, _, err := r.Token(robotA, device.NewClient("two")); !errors.Is(err, device.ErrUnknownRobot) {
		t.Errorf("of one that was forgotten: %v", err)
	}
}
