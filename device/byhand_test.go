package device_test

import (
	"errors"
	"testing"

	"perch/device"
	"perch/must"
)

// TestAddByHand: a robot that was added by hand is adopted, and its token alone admits it until it is forgotten. A check-in
// with the robot's ID does not return the token.
func TestAddByHand(t *testing.T) {
	kept, r := newRegistry(device.AdoptCode)
	robot := must.Value(r.AddByHand("  desk ", "http://192.168.1.2:8003", noon))(t)
	for name, want := range map[string]error{"Desk": device.ErrTaken, "": device.ErrName, "a0:b1:c2:d3:e4:f5": device.ErrName} {
		if other, err := r.AddByHand(name, "", noon); !errors.Is(err, want) {
			t.Errorf("%q: %+v (%v)", name, other, err)
		}
	}
	r = device.NewRegistry(key, device.AdoptCode, kept)
	if !r.Trusts(robot.ID) || r.Settings(robot.ID).Name != "desk" {
		t.Errorf("it is %+v", r.List())
	}
	_, token, err := r.Token(robot.ID, device.NewClient("any"))
	must.Succeed(t, err)
	if in, ok := r.AdmitByHand(token); !ok || in.ID != robot.ID || in.BaseURL != "http://192.168.1.2:8003" {
		t.Errorf("with its token: %v %+v", ok, in)
	}
	_, other := device.NewRegistry(key, device.AdoptOpen, newTable()).CheckIn(from(robotA, "one"), noon)
	for name, token := range map[string]string{"no token": "", "another": token[1:], "one of a robot that checks in": other.Token} {
		if in, ok := r.AdmitByHand(token); ok {
			t.Errorf("%s: %+v", name, in)
		}
	}
	for _, client := range []string{"", "any"} {
		if _, a := r.CheckIn(from(robot.ID, client), noon); a.Token != "" {
			t.Errorf("a check-in of the client %q gets a token", client)
		}
	}
	must.Succeed(t, r.Forget(robot.ID))
	if in, ok := r.AdmitByHand(token); ok {
		t.Errorf("forgotten: %+v", in)
	}
	kept.Breaks(errDiskFull)
	if _, err := r.AddByHand("desk", "", noon); !errors.Is(err, errDiskFull) || len(r.List()) != 0 {
		t.Errorf("on a full disk: %v, %+v", err, r.List())
	}
}
