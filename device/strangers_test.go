package device_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"perch/device"
	"perch/must"
)

// TestAForeignCheckInChangesNothing: the check-in of another client with an adopted robot's MAC address
// changes nothing in the robot's record except Claim.
func TestAForeignCheckInChangesNothing(t *testing.T) {
	for _, adoption := range []device.Adoption{device.AdoptOpen, device.AdoptCode} {
		kept, r := newRegistry(adoption)
		_, waits := r.CheckIn(from(robotA, "one"), noon)
		adopt(t, r, robotA)
		mine, _ := r.CheckIn(from(robotA, "one"), noon)
		r.CheckIn(device.CheckIn{ID: robotA, Client: device.NewClient("foreign"), Board: "bread", Firmware: "9.9.9",
			Language: "zz", Address: "10.9.1.66", BaseURL: "http://10.9.1.66:8003"}, noon.Add(time.Hour))
		for when, read := range map[string]*device.Registry{"at once": r, "after a restart": device.NewRegistry(key, adoption, kept)} {
			robot, err := read.Get(robotA)
			if err != nil || robot.Claim == nil || robot.Claim.BaseURL != "http://10.9.1.66:8003" {
				t.Fatalf("%s, %s: the claim is %+v (%v)", adoption, when, robot.Claim, err)
			}
			robot.Claim = nil
			if !reflect.DeepEqual(robot, mine) {
				t.Errorf("%s, %s: the robot is\n%+v, and was\n%+v", adoption, when, robot, mine)
			}
		}
		if _, err := r.Adopt(waits.Code, noon.Add(time.Hour)); !errors.Is(err, device.ErrNothingToAdopt) {
			t.Errorf("%s: the code of who was adopted long ago: %v", adoption, err)
		}
	}
}

// TestAdoptTakesNoPlantedClaim: adoption by ID never replaces the bound client. Replace does, and makes the
// robot a stranger.
func TestAdoptTakesNoPlantedClaim(t *testing.T) {
	r := device.NewRegistry(key, device.AdoptOpen, newTable())
	_, mine := r.CheckIn(from(robotA, "one"), noon)
	r.CheckIn(from(robotA, "planted"), noon)
	if robot, err := r.Adopt(string(robotA), noon); !errors.Is(err, device.ErrContested) || r.Trusts(robotA) {
		t.Errorf("adopting a robot that may talk, while another claims its MAC: %+v (%v)", robot, err)
	}
	if robot, err := r.Adopt(string(robotA), noon.Add(10*time.Minute)); !errors.Is(err, device.ErrContested) || r.Trusts(robotA) {
		t.Errorf("ten minutes after nobody else has claimed its MAC: %+v (%v)", robot, err)
	}
	if robot, err := r.AdoptClient(robotA, "one"); err != nil || robot.Client != device.NewClient("one") || !r.Trusts(robotA) {
		t.Errorf("the client that its owner names: %+v (%v)", robot, err)
	}
	r.CheckIn(from(robotA, "planted"), noon)
	if _, err := r.Adopt(string(robotA), noon); !errors.Is(err, device.ErrClaimed) {
		t.Errorf("adopting it once more: %v", err)
	}
	if _, err := r.Admit(robotA, device.NewClient("one"), mine.Token); err != nil {
		t.Errorf("the robot's own token: %v", err)
	}
	planted := from(robotA, "planted")
	planted.BaseURL = "http://10.9.1.66:8003"
	r.CheckIn(planted, noon)
	robot, err := r.Replace(robotA, "")
	if err != nil || robot.Client != device.NewClient("planted") || robot.BaseURL != planted.BaseURL || r.Trusts(robotA) {
		t.Errorf("replaced: %+v (%v), trusted %t", robot, err, r.Trusts(robotA))
	}
	if _, err := r.Replace(robotA, ""); !errors.Is(err, device.ErrNothingToAdopt) {
		t.Errorf("replaced by nobody: %v", err)
	}
}

// TestTheFirstHour: after Welcome, a registry with AdoptOpen adopts robots for an hour, even if the clock is
// set meanwhile. It adopts at most eight, not counting those on this machine.
func TestTheFirstHour(t *testing.T) {
	comes := func(r *device.Registry, n int, address string, at time.Time) bool {
		c := from(device.ID(fmt.Sprintf("a0000000%04x", n)), "")
		c.Address = address
		_, a := r.CheckIn(c, at)
		if a.Adopted != r.Trusts(c.ID) {
			t.Errorf("robot %d: adopted %t, trusted %t", n, a.Adopted, r.Trusts(c.ID))
		}
		return a.Adopted
	}
	r := device.NewRegistry(key, device.AdoptOpen, newTable())
	if comes(r, 1, "192.168.1.40", noon) {
		t.Error("adopted by an appliance that was installed long ago")
	}
	r.Welcome(noon.Add(time.Hour))
	if !comes(r, 1, "192.168.1.40", noon.Add(59*time.Minute)) || comes(r, 2, "192.168.1.41", noon.Add(time.Hour)) {
		t.Error("an hour is not an hour")
	}
	r.ClockJumped(24 * time.Hour) // the clock was wrong when Welcome was called
	if !comes(r, 3, "192.168.1.42", noon.Add(24*time.Hour+30*time.Minute)) || comes(r, 4, "192.168.1.43", noon.Add(25*time.Hour)) {
		t.Error("the hour does not follow a clock that was set")
	}
	for n := 10; n < 30; n++ {
		comes(r, n, "192.168.1.66", noon.Add(24*time.Hour))
	}
	if n := len(r.List()) - r.Strangers(); n != 8 {
		t.Errorf("%d robots are adopted in the first hour, want 8", n)
	}
	r.Welcome(noon.Add(24*time.Hour + 4*time.Minute))
	if !comes(r, 30, "192.168.1.67", noon.Add(24*time.Hour+10*time.Minute)) {
		t.Error("an owner who asks for robots within the hour gets none beyond the eight, or ends the hour")
	}
	if !comes(r, 31, "127.0.0.1", noon.Add(24*time.Hour)) {
		t.Error("a simulated robot of this machine is not adopted")
	}
	if err := r.Forget("a0000000001f"); err != nil { // robot 31
		t.Fatal(err)
	}
	if comes(r, 31, "127.0.0.1", noon.Add(24*time.Hour)) {
		t.Error("who was forgotten is adopted again")
	}
	r = device.NewRegistry(key, device.AdoptCode, newTable())
	r.Welcome(noon.Add(time.Hour))
	if comes(r, 1, "192.168.1.40", noon) {
		t.Error("adopted without its code")
	}
}

// TestStrangersGiveWay: the number of strangers is limited. A new stranger is always admitted, and evicts
// neither an adopted robot nor, unless strangers come from many networks, a stranger of another machine.
func TestStrangersGiveWay(t *testing.T) {
	const visits = 800 // beyond every limit, and more than there are addresses in one network
	for name, origin := range map[string]struct {
		address func(n int) string
		most    int
	}{
		"one machine":              {func(int) string { return "192.168.1.66" }, 8},
		"one machine, IPv6":        {func(n int) string { return fmt.Sprintf("fe80::%x", n+1) }, 8},
		"one network":              {func(n int) string { return fmt.Sprintf("192.168.1.%d", n%256) }, 64},
		"many networks":            {func(n int) string { return fmt.Sprintf("10.%d.%d.1", n/256, n%256) }, 200},
		"who says nothing":         {func(int) string { return "" }, 200},
		"programs of this machine": {func(int) string { return "127.0.0.1" }, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept, r := newRegistry(device.AdoptOpen)
			owned(t, r, robotA)
			stranger := from(robotB, "two")
			stranger.Address = "172.20.0.1"
			_, admission := r.CheckIn(stranger, noon.Add(time.Second))
			gone := 0
			for n := range visits {
				c := from(device.ID(fmt.Sprintf("0000000%05x", n+1)), "")
				c.Address = origin.address(n)
				_, a := r.CheckIn(c, noon.Add(time.Duration(n)*time.Millisecond))
				if a.Token == "" || !a.New {
					t.Fatalf("stranger %d: %+v", n, a)
				}
				gone += len(a.Gone)
			}
			if n := r.Strangers(); n > origin.most+1 || n+gone != visits+1 || len(kept.Kept) != n+1 {
				t.Errorf("%d strangers are known, %d gave way, %d records are kept; want at most %d", n, gone, len(kept.Kept), origin.most+1)
			}
			if !r.Trusts(robotA) {
				t.Error("the owner's robot is gone")
			}
			if _, err := r.Admit(robotB, device.NewClient("two"), admission.Token); err != nil && name != "many networks" {
				t.Errorf("a stranger of another machine had to go: %v", err)
			}
		})
	}
}

// TestOneMachineWithTwoAddresses: robots that a machine claims from two addresses do not count towards the
// limit of either address, because one of them could be the robot's own. The registry holds at most 200
// such robots, and evicts them before a stranger of another machine.
func TestOneMachineWithTwoAddresses(t *testing.T) {
	_, r := newRegistry(device.AdoptOpen)
	_, admission := r.CheckIn(claimOf(robotB, "two", "192.168.1.40"), noon)
	for n := range 400 {
		id, at := device.ID(fmt.Sprintf("0000000%05x", n+1)), noon.Add(time.Duration(n+1)*time.Second)
		r.CheckIn(claimOf(id, "by IPv4", "192.168.1.66"), at)
		r.CheckIn(claimOf(id, "by IPv6", "fe80::66"), at)
		if n := r.Strangers(); n > 200 {
			t.Fatalf("%d strangers are known", n)
		}
	}
	if n := r.Strangers(); n != 200 {
		t.Errorf("%d strangers are known; SECURITY.md says 200", n)
	}
	if _, err := r.Admit(robotB, device.NewClient("two"), admission.Token); err != nil {
		t.Errorf("a stranger of another machine had to go: %v", err)
	}
}

// TestRestoredStrangersAreBounded: a restored backup may hold any number of strangers. NewRegistry removes all
// but 200, and the tools of the others.
func TestRestoredStrangersAreBounded(t *testing.T) {
	kept := newTable()
	big := []device.Tool{{Name: "self.tool", Description: strings.Repeat("x", 100<<10)}}
	for n := range 300 {
		id := device.ID(fmt.Sprintf("a0000000%04x", n))
		kept.PutSoon(string(id), device.Robot{ID: id, Bound: true, Named: n == 0, Tools: big, LastSeen: noon.Add(time.Duration(n) * time.Second)})
	}
	r := device.NewRegistry(key, device.AdoptOpen, kept)
	if n := r.Strangers(); n != 200 || len(kept.Kept) != 201 {
		t.Errorf("%d strangers are known, %d records are kept", n, len(kept.Kept))
	}
	for id, robot := range kept.All() {
		if robot.Tools != nil {
			t.Fatalf("the tools of %s are kept", id)
		}
	}
	r.StoreTools("a00000000000", []device.Tool{{Name: "self.tool"}})
	if robot, err := r.Get("a00000000000"); err != nil || len(robot.Tools) != 1 {
		t.Errorf("the adopted robot's tools: %v (%v)", robot.Tools, err)
	}
}

// TestStrangersExpire: a stranger that was absent for more than 30 days is removed, and an adopted robot is not.
func TestStrangersExpire(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	owned(t, r, robotA)
	r.CheckIn(from(robotB, "two"), noon)
	r = device.NewRegistry(key, device.AdoptOpen, kept)
	_, a := r.CheckIn(from("a0b1c2d3e4f7", "three"), noon.Add(30*24*time.Hour+time.Minute))
	if _, err := r.Get(robotB); !errors.Is(err, device.ErrUnknownRobot) || len(a.Gone) != 1 || a.Gone[0] != robotB || !r.Trusts(robotA) {
		t.Errorf("after a month: %v, gone %v, adopted %t", err, a.Gone, r.Trusts(robotA))
	}
}

// TestRobotsOfThePageExpire: a robot of the page that was absent for more than a week is removed, unless its owner has
// adopted it or it was given a name.
func TestRobotsOfThePageExpire(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	const adopted = device.ID("a0b1c2d3e4f9")
	r.Welcome(noon.Add(time.Hour))
	for _, id := range []device.ID{robotA, robotB, adopted} {
		c := from(id, string(id))
		c.Board = device.PageBoard
		if _, a := r.CheckIn(c, noon); !a.Adopted {
			t.Errorf("%s is not adopted", id)
		}
	}
	must.Value(r.Nickname(robotB, "Desk"))(t)
	must.Value(r.Adopt(string(adopted), noon))(t)
	owned(t, r, "a0b1c2d3e4f8")
	r = device.NewRegistry(key, device.AdoptOpen, kept)
	_, a := r.CheckIn(from("a0b1c2d3e4f7", "three"), noon.Add(7*24*time.Hour-time.Minute))
	if len(a.Gone) > 0 {
		t.Errorf("within a week: gone %v", a.Gone)
	}
	_, a = r.CheckIn(from("a0b1c2d3e4f7", "three"), noon.Add(7*24*time.Hour+time.Minute))
	if len(a.Gone) != 1 || a.Gone[0] != robotA || !r.Trusts(robotB) || !r.Trusts(adopted) || !r.Trusts("a0b1c2d3e4f8") {
		t.Errorf("after a week: gone %v", a.Gone)
	}
}

func TestForgetStrangers(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	owned(t, r, robotA)
	r.CheckIn(from(robotB, "two"), noon)
	must.Succeed(t, r.Forget(robotB))
	_, before := r.CheckIn(from(robotB, "two"), noon)
	r.CheckIn(from("a0b1c2d3e4f7", "three"), noon)
	gone, err := r.ForgetStrangers()
	if err != nil || len(gone) != 2 || r.Strangers() != 0 || !r.Trusts(robotA) || len(r.List()) != 1 {
		t.Errorf("gone %v (%v), %d are left", gone, err, r.Strangers())
	}
	r = device.NewRegistry(key, device.AdoptOpen, kept)
	r.CheckIn(from(robotB, "two"), noon)
	if _, err := r.Admit(robotB, device.NewClient("two"), before.Token); !errors.Is(err, device.ErrToken) {
		t.Errorf("a token from before it was forgotten: %v", err)
	}
	kept.Breaks(errDiskFull)
	if gone, err := r.ForgetStrangers(); !errors.Is(err, errDiskFull) || len(gone) != 0 || r.Strangers() != 1 {
		t.Errorf("on a full disk: %v (%v)", gone, err)
	}
}

// TestToolsAreBounded: a list of tools is not stored if it exceeds 64 KiB, or if all lists together would exceed
// 4 MiB.
func TestToolsAreBounded(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	list := func(bytes int) []device.Tool {
		return []device.Tool{{Name: "self.tool", Description: strings.Repeat("x", bytes)}}
	}
	robots := 0
	for n := range 80 {
		c := from(device.ID(fmt.Sprintf("a0000000%04x", n)), "")
		r.CheckIn(c, noon)
		adopt(t, r, c.ID)
		r.StoreTools(c.ID, list(65<<10))
		if robot, err := r.Get(c.ID); err != nil || robot.Tools != nil {
			t.Fatalf("65 KB of tools are kept (%v)", err)
		}
		r.StoreTools(c.ID, list(60<<10))
		if robot, err := r.Get(c.ID); err == nil && robot.Tools != nil {
			robots++
		}
	}
	if robots < 60 || robots > 69 {
		t.Errorf("60 KB each of %d robots are kept, want about 4 MB", robots)
	}
	must.Succeed(t, r.Forget("a00000000000"))
	r = device.NewRegistry(key, device.AdoptOpen, kept)
	r.StoreTools("a0000000004f", list(60<<10))
	if robot, err := r.Get("a0000000004f"); err != nil || robot.Tools == nil {
		t.Errorf("what a forgotten robot had leaves no memory (%v)", err)
	}
}

// TestNobodyVoidsACode: a client that uses the MAC address of a waiting robot and checks in again and again from
// another machine does not invalidate the code that the robot shows.
func TestNobodyVoidsACode(t *testing.T) {
	for name, make := range map[string]func(r *device.Registry){
		"a new robot": func(*device.Registry) {},
		"an erased one": func(r *device.Registry) {
			r.CheckIn(from(robotA, "before"), noon)
			if _, err := r.Adopt(string(robotA), noon); err != nil && !errors.Is(err, device.ErrNothingToAdopt) {
				t.Fatal(err)
			}
		},
	} {
		r := device.NewRegistry(key, device.AdoptCode, newTable())
		make(r)
		_, mine := r.CheckIn(from(robotA, "mine"), noon.Add(time.Minute))
		for n := range 50 {
			foreign := from(robotA, fmt.Sprint("foreign ", n))
			foreign.Address, foreign.BaseURL = "192.168.1.66", "http://192.168.1.66:8003"
			if _, a := r.CheckIn(foreign, noon.Add(time.Minute+time.Duration(n)*time.Second)); a.Token != "" || a.Code == mine.Code {
				t.Fatalf("%s: it got %+v", name, a)
			}
		}
		if _, again := r.CheckIn(from(robotA, "mine"), noon.Add(3*time.Minute)); again.Code != mine.Code {
			t.Errorf("%s: it shows %s, and showed %s", name, again.Code, mine.Code)
		}
		foreign := from(robotA, "the last word")
		foreign.Address, foreign.BaseURL = "192.168.1.66", "http://192.168.1.66:8003"
		_, theirs := r.CheckIn(foreign, noon.Add(3*time.Minute))
		robot, err := r.Adopt(mine.Code, noon.Add(3*time.Minute))
		if err != nil || robot.Client != device.NewClient("mine") || !r.Trusts(robotA) || robot.BaseURL == foreign.BaseURL {
			t.Errorf("%s: adopted %+v (%v)", name, robot, err)
		}
		if _, err := r.Adopt(theirs.Code, noon.Add(3*time.Minute)); !errors.Is(err, device.ErrCode) {
			t.Errorf("%s: the other's code, after that: %v", name, err)
		}
		if _, a := r.CheckIn(from(robotA, "mine"), noon.Add(4*time.Minute)); a.Token == "" {
			t.Errorf("%s: adopted, it gets no token", name)
		}
	}
}
