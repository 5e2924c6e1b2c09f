package device_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"perch/device"
	"perch/must"
)

// TestCodeExpires: a code is valid for CodeLife and for one adoption. It becomes invalid when the robot is
// forgotten, when the bound client of an adopted robot checks in, and when the appliance restarts.
func TestCodeExpires(t *testing.T) {
	for name, end := range map[string]func(r *device.Registry, code string) (*device.Registry, time.Time){
		"late": func(r *device.Registry, _ string) (*device.Registry, time.Time) { return r, noon.Add(device.CodeLife) },
		"used": func(r *device.Registry, code string) (*device.Registry, time.Time) {
			must.Value(r.Adopt(code, noon))(t)
			return r, noon
		},
		"adopted by id": func(r *device.Registry, _ string) (*device.Registry, time.Time) {
			must.Value(r.Adopt(string(robotA), noon))(t)
			return r, noon
		},
		"forgotten": func(r *device.Registry, _ string) (*device.Registry, time.Time) {
			must.Succeed(t, r.Forget(robotA))
			r.CheckIn(from(robotA, "one"), noon)
			return r, noon
		},
		"another client": func(r *device.Registry, _ string) (*device.Registry, time.Time) {
			r.CheckIn(from(robotA, "two"), noon)
			return r, noon
		},
	} {
		_, r := newRegistry(device.AdoptCode)
		_, a := r.CheckIn(from(robotA, "one"), noon)
		r, at := end(r, a.Code)
		if robot, err := r.Adopt(a.Code, at); !errors.Is(err, device.ErrCode) || !errors.Is(err, device.ErrNothingToAdopt) {
			t.Errorf("%s: adopted %+v (%v)", name, robot, err)
		}
	}
	kept := newTable()
	_, a := device.NewRegistry(key, device.AdoptCode, kept).CheckIn(from(robotA, "one"), noon)
	r := device.NewRegistry(key, device.AdoptCode, kept)
	robot, err := r.Get(robotA)
	if err != nil || r.Code(robot, noon) != "" {
		t.Errorf("after a restart it shows %q (%v)", r.Code(robot, noon), err)
	}
	if _, err := r.Adopt(a.Code, noon); !errors.Is(err, device.ErrCode) {
		t.Errorf("after a restart: %v", err)
	}
	if _, err := r.Adopt(string(robotA), noon); err != nil {
		t.Errorf("after a restart, by its id: %v", err)
	}
}

func TestCodeAdoptsOtherClientOfKnownRobot(t *testing.T) {
	for _, adoption := range []device.Adoption{device.AdoptOpen, device.AdoptCode} {
		r := device.NewRegistry(key, adoption, newTable())
		owned(t, r, robotA)
		_, a := r.CheckIn(from(robotA, "two"), noon)
		if a.Token != "" || len(a.Code) != 6 {
			t.Fatalf("%s: another client gets %+v", adoption, a)
		}
		r.CheckIn(from(robotA, "one"), noon)
		if _, err := r.Adopt(a.Code, noon); !errors.Is(err, device.ErrCode) {
			t.Errorf("%s: the one it is bound to is back, and the code of the other is good: %v", adoption, err)
		}
		_, a = r.CheckIn(from(robotA, "two"), noon)
		if robot, err := r.Adopt(a.Code, noon); err != nil || robot.Client != device.NewClient("two") || !r.Trusts(robotA) {
			t.Errorf("%s: %+v (%v), trusted %t", adoption, robot, err, r.Trusts(robotA))
		}
		if _, a = r.CheckIn(from(robotA, "two"), noon); a.Token == "" || a.Code != "" {
			t.Errorf("%s: adopted, it gets %+v", adoption, a)
		}
	}
}

// TestTooManyWrongCodes: after ten wrong codes no code is accepted. Text that has not the form of a code does
// not count as a wrong code.
func TestTooManyWrongCodes(t *testing.T) {
	r := device.NewRegistry(key, device.AdoptCode, newTable())
	_, a := r.CheckIn(from(robotA, "one"), noon)
	for n := range 30 {
		if _, err := r.Adopt(fmt.Sprintf("stack-chan %d", n), noon); !errors.Is(err, device.ErrNothingToAdopt) {
			t.Error(err)
		}
	}
	for n := range 10 {
		wrong := fmt.Sprintf("%06d", n)
		if _, err := r.Adopt(wrong, noon); wrong != a.Code && !errors.Is(err, device.ErrCode) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if _, err := r.Adopt(a.Code, noon); !errors.Is(err, device.ErrTries) {
		t.Errorf("after ten wrong ones: %v", err)
	}
	if robot, err := r.Adopt(string(robotA), noon); err != nil || !robot.Bound {
		t.Errorf("by its id: %v", err)
	}
}

func TestRobotsWithoutACodeAreAdoptedByID(t *testing.T) {
	r := device.NewRegistry(key, device.AdoptCode, newTable())
	without := device.ID("")
	for n := range 300 {
		c := from(device.ID(fmt.Sprintf("a0000000%04x", n)), "")
		c.Address = fmt.Sprintf("10.0.%d.%d", n/8, n%8)
		id := c.ID
		r.CheckIn(c, noon)
		adopt(t, r, id) // an adopted robot is not evicted
		c.Client = device.NewClient("another")
		if _, a := r.CheckIn(c, noon); a.Token != "" {
			t.Fatalf("%s is let in", id)
		} else if a.Code == "" {
			without = id
		}
	}
	if without == "" {
		t.Fatal("all have codes")
	}
	if robot, err := r.Replace(without, ""); err != nil || robot.ID != without {
		t.Error(err)
	}
}
