package device_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"perch/device"
)

// claimOf returns a check-in of a client with a robot's MAC address, from an IP address.
func claimOf(id device.ID, client, address string) device.CheckIn {
	c := from(id, client)
	c.Address = address
	return c
}

// TestAnIDAdoptsNoneOfTwo: if a stranger has checked in with a robot's MAC address, adoption by ID fails, even
// after the robot was absent for 60 days while the stranger checked in each day.
func TestAnIDAdoptsNoneOfTwo(t *testing.T) {
	for _, adoption := range []device.Adoption{device.AdoptOpen, device.AdoptCode} {
		kept, r := newRegistry(adoption)
		r.CheckIn(claimOf(robotA, "stranger", "192.168.1.66"), noon)
		r.CheckIn(claimOf(robotA, "robot", "192.168.1.40"), noon.Add(time.Minute))
		for days := range 60 {
			now := noon.Add(time.Duration(days) * 24 * time.Hour)
			r.CheckIn(claimOf(robotA, "stranger", "192.168.1.66"), now)
			r = device.NewRegistry(key, adoption, kept)
			if robot, err := r.Adopt(string(robotA), now.Add(time.Hour)); !errors.Is(err, device.ErrContested) {
				t.Fatalf("%s: after %d days the id adopts %+v (%v)", adoption, days, robot.Client, err)
			}
		}
		if robot, err := r.AdoptClient(robotA, "192.168.1.40"); err != nil || robot.Client != device.NewClient("robot") ||
			robot.Address != "192.168.1.40" ||
			!r.Trusts(robotA) || robot.Claimants()[0].Address != "192.168.1.40" || len(robot.Claimants()) != 1 {
			t.Errorf("%s: by its address: %+v (%v)", adoption, robot, err)
		}
		if _, a := r.CheckIn(claimOf(robotA, "robot", "192.168.1.40"), noon); a.Token == "" {
			t.Errorf("%s: it gets no token", adoption)
		}
	}
}

func TestWelcomeAdoptsNoContestedRobot(t *testing.T) {
	kept, r := newRegistry(device.AdoptCode)
	r.CheckIn(claimOf(robotA, "stranger", "192.168.1.66"), noon)
	r.CheckIn(claimOf(robotA, "robot", "192.168.1.40"), noon)
	r = device.NewRegistry(key, device.AdoptOpen, kept) // the configuration was changed
	r.Welcome(noon.Add(time.Hour))
	for _, client := range []string{"stranger", "robot", "stranger"} {
		if _, a := r.CheckIn(claimOf(robotA, client, "192.168.1.66"), noon); a.Adopted || r.Trusts(robotA) {
			t.Errorf("%s is adopted", client)
		}
	}
	if _, a := r.CheckIn(from(robotB, "other"), noon); !a.Adopted {
		t.Error("a robot that nobody else claims is not adopted")
	}
}

// TestManyClaimsAreBounded: after more claims than are stored, Unlisted is true, adoption by ID fails, and the
// owner can still adopt the robot by its Client-Id. Many claims from one machine do not evict the robot's claim.
func TestManyClaimsAreBounded(t *testing.T) {
	for name, address := range map[string]func(n int) string{
		"one machine":   func(int) string { return "192.168.1.66" },
		"many machines": func(n int) string { return fmt.Sprintf("192.168.1.%d", 100+n) },
		"no address":    func(int) string { return "" },
		"the robot's":   func(int) string { return "192.168.1.40" },
	} {
		for _, adoption := range []device.Adoption{device.AdoptOpen, device.AdoptCode} {
			kept, r := newRegistry(adoption)
			r.CheckIn(claimOf(robotA, "first", address(0)), noon)
			r.CheckIn(claimOf(robotA, "robot", "192.168.1.40"), noon)
			for n := range 100 {
				r.CheckIn(claimOf(robotA, fmt.Sprint("stranger ", n), address(n)), noon.Add(time.Duration(n)*time.Second))
			}
			r = device.NewRegistry(key, adoption, kept)
			robot, err := r.Get(robotA)
			if err != nil || len(robot.Claimants()) > 9 || !robot.Unlisted || !robot.Contested() {
				t.Errorf("%s, %s: %d claimants, unlisted %t (%v)", name, adoption, len(robot.Claimants()), robot.Unlisted, err)
			}
			listed := false
			for _, c := range robot.Claimants() {
				listed = listed || c.Client == "robot"
			}
			if few := name == "one machine" || name == "no address"; few && !listed {
				t.Errorf("%s, %s: the robot's claim is gone: %v", name, adoption, robot.Claimants())
			}
			if _, err := r.Adopt(string(robotA), noon.Add(time.Hour)); !errors.Is(err, device.ErrContested) {
				t.Errorf("%s, %s: the id adopts (%v)", name, adoption, err)
			}
			if robot, err := r.AdoptClient(robotA, "robot"); err != nil || robot.Client != device.NewClient("robot") || robot.Contested() {
				t.Errorf("%s, %s: named, %+v (%v)", name, adoption, robot, err)
			}
			if _, a := r.CheckIn(claimOf(robotA, "robot", "192.168.1.40"), noon); a.Token == "" {
				t.Errorf("%s, %s: it gets no token", name, adoption)
			}
		}
	}
}

func TestAdoptClientByIDOrUniqueAddress(t *testing.T) {
	for _, c := range []struct {
		client string
		want   string
		err    error
	}{
		{client: "first", want: "first"},
		{client: "robot", want: "robot"},
		{client: "192.168.1.40", want: "robot"},
		{client: "::ffff:192.168.1.40", want: "robot"},
		{client: "192.168.1.66", err: device.ErrAmbiguous},
		{client: "192.168.1.67", err: device.ErrNotAmongThem},
		{client: "rob", err: device.ErrNotAmongThem},
		{client: "another", err: device.ErrNothingToAdopt},
	} {
		_, r := newRegistry(device.AdoptOpen)
		r.CheckIn(claimOf(robotA, "first", "192.168.1.66"), noon)
		r.CheckIn(claimOf(robotA, "robot", "192.168.1.40"), noon)
		r.CheckIn(claimOf(robotA, "192.168.1.40", "192.168.1.66"), noon)
		robot, err := r.AdoptClient(robotA, c.client)
		if !errors.Is(err, c.err) || err == nil && robot.Client != device.NewClient(c.want) {
			t.Errorf("%s adopts %+v (%v)", c.client, robot.Client, err)
		}
		if list := new(device.ClaimError); err != nil && (!errors.As(err, &list) || len(list.Claimants) != 3) {
			t.Errorf("%s: the refusal does not list the clients: %v", c.client, err)
		}
	}
	_, r := newRegistry(device.AdoptOpen)
	if _, err := r.AdoptClient(robotA, "one"); !errors.Is(err, device.ErrNothingToAdopt) {
		t.Errorf("of a robot that was never here: %v", err)
	}
}

func TestAdoptClientAndReplaceOfAnAdoptedRobot(t *testing.T) {
	_, r := newRegistry(device.AdoptOpen)
	owned(t, r, robotA)
	r.CheckIn(claimOf(robotA, "erased", "192.168.1.41"), noon)
	r.CheckIn(claimOf(robotA, "stranger", "192.168.1.66"), noon)
	if _, err := r.Adopt(string(robotA), noon.Add(time.Hour)); !errors.Is(err, device.ErrClaimed) {
		t.Errorf("by its id: %v", err)
	}
	if _, err := r.Replace(robotA, ""); !errors.Is(err, device.ErrContested) {
		t.Errorf("replaced by one of two: %v", err)
	}
	if _, err := r.Replace(robotA, "one"); !errors.Is(err, device.ErrNothingToAdopt) {
		t.Errorf("replaced by itself: %v", err)
	}
	if robot, err := r.Replace(robotA, "192.168.1.41"); err != nil || robot.Client != device.NewClient("erased") || r.Trusts(robotA) {
		t.Errorf("replaced: %+v (%v)", robot, err)
	}
	r.CheckIn(claimOf(robotA, "one", "192.168.1.40"), noon)
	if robot, err := r.AdoptClient(robotA, "erased"); err != nil || robot.Client != device.NewClient("erased") ||
		!r.Trusts(robotA) || robot.Claim != nil {
		t.Errorf("named: %+v (%v)", robot, err)
	}
}

// TestNoMachineDisplacesARobotThatItClaims: a machine that claims a robot, and then checks in with many other
// MAC addresses, does not evict the robot's own claim.
func TestNoMachineDisplacesARobotThatItClaims(t *testing.T) {
	_, r := newRegistry(device.AdoptOpen)
	r.CheckIn(claimOf(robotA, "stranger", "192.168.1.66"), noon)
	r.CheckIn(claimOf(robotA, "robot", "192.168.1.40"), noon)
	for n := range 400 {
		r.CheckIn(claimOf(device.ID(fmt.Sprintf("0000000%05x", n+1)), "", fmt.Sprintf("192.168.1.%d", 66+n%8)),
			noon.Add(time.Duration(n)*time.Second))
	}
	r.CheckIn(claimOf(robotA, "stranger", "192.168.1.66"), noon.Add(time.Hour))
	if robot, err := r.Adopt(string(robotA), noon.Add(2*time.Hour)); !errors.Is(err, device.ErrContested) {
		t.Errorf("the id adopts %+v (%v)", robot.Client, err)
	}
}

func TestContestedClaimOfAnEarlierVersion(t *testing.T) {
	kept := newTable()
	kept.PutSoon(string(robotA), device.Robot{ID: robotA, LastSeen: noon,
		Claim: &device.Claim{Client: device.NewClient("last"), Contested: noon}})
	r := device.NewRegistry(key, device.AdoptCode, kept)
	if _, err := r.Adopt(string(robotA), noon.Add(time.Hour)); !errors.Is(err, device.ErrContested) {
		t.Errorf("the id adopts (%v)", err)
	}
	if robot, err := r.AdoptClient(robotA, "first"); err != nil || robot.Client != device.NewClient("first") {
		t.Errorf("the one that is no longer listed: %+v (%v)", robot, err)
	}
}
