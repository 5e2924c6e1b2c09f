package device_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/device"
	"perch/must"
)

func TestOpenAdoptionBindsTheFirstClient(t *testing.T) {
	_, r := newRegistry(device.AdoptOpen)
	robot, a := r.CheckIn(from(robotA, "one"), noon)
	if a.Token == "" || a.Code != "" || !robot.Bound || robot.Claim != nil || !robot.FirstSeen.Equal(noon) {
		t.Fatalf("first visit: %+v, %+v", robot, a)
	}
	if got, err := r.Admit(robotA, device.NewClient("one"), a.Token); err != nil || got.ID != robotA {
		t.Errorf("its token: %v", err)
	}
	// Another client uses the MAC address: the robot's flash was erased, or the client is an impostor.
	robot, rival := r.CheckIn(from(robotA, "two"), noon.Add(time.Hour))
	if rival.Token != "" || len(rival.Code) != 6 || robot.Claim == nil || robot.Client != device.NewClient("one") {
		t.Errorf("another client: %+v, %+v", robot, rival)
	}
	if _, err := r.Admit(robotA, device.NewClient("one"), a.Token); err != nil {
		t.Errorf("the bound client is locked out by a claim: %v", err)
	}
	// A check-in of the bound client does not remove the claim, because the bound client may be the impostor.
	robot, again := r.CheckIn(from(robotA, "one"), noon.Add(2*time.Hour))
	if again.Token != a.Token || robot.Claim == nil || !robot.FirstSeen.Equal(noon) || !robot.LastSeen.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("back again: %+v, %+v", robot, again)
	}
}

func TestAdoptionThatAsks(t *testing.T) {
	for name, by := range map[string]func(a device.Admission) string{
		"by id":            func(device.Admission) string { return string(robotA) },
		"by MAC":           func(device.Admission) string { return "A0:B1:C2:D3:E4:F5" },
		"by code":          func(a device.Admission) string { return a.Code },
		"with two waiting": func(a device.Admission) string { return a.Code },
	} {
		t.Run(name, func(t *testing.T) {
			kept, r := newRegistry(device.AdoptCode)
			robot, a := r.CheckIn(from(robotA, "one"), noon)
			if a.Token != "" || len(a.Code) != 6 || robot.Bound || r.Code(robot, noon) != a.Code {
				t.Fatalf("a stranger: %+v, %+v, code %s", robot, a, r.Code(robot, noon))
			}
			r.CheckIn(from(robotB, "two"), noon)
			kept.writes()
			adopted, err := r.Adopt(by(a), noon)
			if err != nil || adopted.ID != robotA || !adopted.Bound || adopted.Claim != nil || r.Code(adopted, noon) != "" {
				t.Fatalf("adopted %+v (%v)", adopted, err)
			}
			if kept.put != 1 {
				t.Errorf("an adoption is %d durable writes, not 1", kept.put)
			}
			if _, a = r.CheckIn(from(robotA, "one"), noon); a.Token == "" || a.Code != "" {
				t.Errorf("after adoption: %+v", a)
			}
			if other, err := r.Get(robotB); err != nil || other.Bound {
				t.Errorf("the other one: %+v (%v)", other, err)
			}
		})
	}
}

func TestAdoptRefuses(t *testing.T) {
	kept, r := newRegistry(device.AdoptCode)
	_, a := r.CheckIn(from(robotA, "one"), noon)
	for _, what := range []string{"", "000000", a.Code + "0", string(robotB), "stack-chan", "%" + a.Code} {
		if what == a.Code {
			continue
		}
		if _, err := r.Adopt(what, noon); !errors.Is(err, device.ErrNothingToAdopt) {
			t.Errorf("adopt %q: %v", what, err)
		}
	}
	kept.Breaks(errDiskFull)
	if _, err := r.Adopt(a.Code, noon); !errors.Is(err, errDiskFull) || !strings.Contains(err.Error(), "store robot a0b1c2d3e4f5") {
		t.Errorf("on a full disk: %v", err)
	}
	if robot, err := r.Get(robotA); err != nil || robot.Bound || r.Code(robot, noon) != a.Code {
		t.Errorf("what could not be kept is true all the same: %+v (%v)", robot, err)
	}
	kept.Breaks(nil)
	must.Value(r.Adopt(a.Code, noon))(t)
	if _, err := r.Adopt(a.Code, noon); !errors.Is(err, device.ErrNothingToAdopt) {
		t.Errorf("adopted twice: %v", err)
	}
}

func TestForget(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	_, old := r.CheckIn(from(robotA, "one"), noon)
	kept.writes()
	kept.Breaks(errDiskFull)
	if err := r.Forget(robotA); !errors.Is(err, errDiskFull) {
		t.Errorf("on a full disk: %v", err)
	}
	if _, err := r.Admit(robotA, device.NewClient("one"), old.Token); err != nil {
		t.Errorf("what could not be kept is true all the same: %v", err)
	}
	kept.Breaks(nil)
	if err := r.Forget(robotA); err != nil || kept.put != 1 {
		t.Fatalf("forget: %v, %d durable writes", err, kept.put)
	}
	if _, err := r.Get(robotA); !errors.Is(err, device.ErrUnknownRobot) {
		t.Errorf("it is still known: %v", err)
	}
	if list := r.List(); len(list) != 0 {
		t.Errorf("it is still listed: %+v", list)
	}
	if err := r.Forget(robotA); !errors.Is(err, device.ErrUnknownRobot) {
		t.Errorf("forgotten twice: %v", err)
	}
	if err := r.Forget(robotB); !errors.Is(err, device.ErrUnknownRobot) {
		t.Errorf("forget a robot never seen: %v", err)
	}
	r.RecordSeen(robotA, noon.Add(time.Minute)) // its connection ends
	r.StoreEcho(robotA, true)
	r.StoreTransport(robotA, device.MQTT)
	r.Flush()
	if record := kept.Kept[string(robotA)]; !record.LastSeen.IsZero() || record.Echo || record.Transport != "" {
		t.Errorf("stored of a forgotten robot: %+v", record)
	}
	r = device.NewRegistry(key, device.AdoptOpen, kept) // the robot remains forgotten after a restart
	if _, err := r.Admit(robotA, device.NewClient("one"), old.Token); !errors.Is(err, device.ErrToken) {
		t.Errorf("the old token after forget: %v", err)
	}
	back, fresh := r.CheckIn(from(robotA, "one"), noon.Add(time.Hour))
	if fresh.Token == "" || fresh.Token == old.Token || !back.FirstSeen.Equal(noon.Add(time.Hour)) {
		t.Errorf("back again: %+v, same token: %t", back, fresh.Token == old.Token)
	}
	if _, err := r.Admit(robotA, device.NewClient("one"), old.Token); !errors.Is(err, device.ErrToken) {
		t.Errorf("the old token is good again: %v", err)
	}
}

func TestAdmitRefuses(t *testing.T) {
	r := device.NewRegistry(key, device.AdoptOpen, newTable())
	_, a := r.CheckIn(from(robotA, "one"), noon)
	one := device.NewClient("one")
	for name, try := range map[string]struct {
		id     device.ID
		client device.Client
		token  string
	}{
		"no token":                 {robotA, one, ""},
		"half a token":             {robotA, one, a.Token[:20]},
		"one letter more":          {robotA, one, a.Token + "A"},
		"upper case":               {robotA, one, strings.ToUpper(a.Token)},
		"another client":           {robotA, device.NewClient("two"), a.Token},
		"no client":                {robotA, device.NewClient(""), a.Token},
		"another robot":            {robotB, one, a.Token},
		"right for an unknown one": {robotB, one, key.Token(robotB, one, 0)},
		"right for another client": {robotA, device.NewClient("two"), key.Token(robotA, device.NewClient("two"), 0)},
		"of the next epoch":        {robotA, one, key.Token(robotA, one, 1)},
	} {
		if robot, err := r.Admit(try.id, try.client, try.token); !errors.Is(err, device.ErrToken) || robot.ID != "" {
			t.Errorf("%s: %+v (%v)", name, robot, err)
		}
	}
	r = device.NewRegistry(key, device.AdoptCode, newTable())
	r.CheckIn(from(robotA, ""), noon)
	if _, err := r.Admit(robotA, device.NewClient(""), key.Token(robotA, device.NewClient(""), 0)); !errors.Is(err, device.ErrToken) {
		t.Errorf("one that waits for its owner: %v", err)
	}
}

// TestStrangeClientSurvivesARestart: a Client-Id must not change when it is stored as JSON, because otherwise
// the robot's token would be invalid after a restart.
func TestStrangeClientSurvivesARestart(t *testing.T) {
	for _, client := range []string{"", "\xff\xfe", "<uuid>\u2028", strings.Repeat("é", 100) + "x", strings.Repeat("x", 127) + "é"} {
		kept := newTable()
		_, a := device.NewRegistry(key, device.AdoptOpen, kept).CheckIn(from(robotA, client), noon)
		r := device.NewRegistry(key, device.AdoptOpen, kept)
		if _, err := r.Admit(robotA, device.NewClient(client), a.Token); err != nil {
			t.Errorf("client %q after a restart: %v", client, err)
		}
		if _, again := r.CheckIn(from(robotA, client), noon); again.Token != a.Token {
			t.Errorf("client %q gets another token after a restart", client)
		}
	}
}

func TestListIsSorted(t *testing.T) {
	r := device.NewRegistry(key, device.AdoptCode, newTable())
	for _, n := range []int{5, 3, 9, 1, 7} {
		r.CheckIn(from(device.ID(fmt.Sprintf("a0b1c2d3e4f%d", n)), ""), noon)
	}
	got := ""
	for _, robot := range r.List() {
		got += string(robot.ID[11:])
	}
	if got != "13579" {
		t.Errorf("the list is in the order %s", got)
	}
}

func TestRegistryIsSafeForAll(t *testing.T) {
	r := device.NewRegistry(key, device.AdoptOpen, newTable())
	var wg sync.WaitGroup
	for n := range 8 {
		id := device.ID(fmt.Sprintf("a0b1c2d3e4f%d", n/2))
		wg.Go(func() {
			for range 200 {
				_, a := r.CheckIn(from(id, "one"), noon)
				must.Value(r.Admit(id, device.NewClient("one"), a.Token))(t)
				r.StoreTools(id, []device.Tool{{Name: "self.reboot"}})
				r.List()
			}
		})
	}
	wg.Wait()
}

func TestOnlyAdoptedRobotsAreTrusted(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	r.CheckIn(from(robotA, "one"), noon)
	r.CheckIn(from(robotB, "two"), noon)
	if r.Trusts(robotA) {
		t.Error("a robot that was let in as everybody is, is trusted")
	}
	if robot, err := r.Adopt(string(robotA), noon); err != nil || robot.Client != device.NewClient("one") {
		t.Fatalf("adopt a robot that is bound: %+v, %v", robot, err)
	}
	r = device.NewRegistry(key, device.AdoptOpen, kept)
	if !r.Trusts(robotA) || r.Trusts(robotB) || r.Trusts("000000000000") {
		t.Error("after a restart the adopted one is trusted, and no other")
	}
	r.CheckIn(from(robotA, "pretender"), noon)
	if robot, err := r.Replace(robotA, ""); err != nil || robot.Client != device.NewClient("pretender") || r.Trusts(robotA) {
		t.Errorf("another client with its MAC was let in: %+v, %v; trusted %t", robot, err, r.Trusts(robotA))
	}
	if _, err := r.Adopt(string(robotA), noon); err != nil || !r.Trusts(robotA) {
		t.Errorf("the second word: %v", err)
	}
	must.Succeed(t, r.Forget(robotA))
	r.CheckIn(from(robotA, "one"), noon)
	if r.Trusts(robotA) {
		t.Error("a forgotten robot that came back is trusted")
	}
	if _, err := r.Adopt("000000", noon); !errors.Is(err, device.ErrNothingToAdopt) {
		t.Errorf("a code that nobody shows: %v", err)
	}
}

func TestVisitWithoutNewsIsNotWritten(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	changed := func(change func(*device.CheckIn)) device.CheckIn {
		c := from(robotA, "one")
		change(&c)
		return c
	}
	same := func(*device.CheckIn) {}
	var seen time.Time
	for _, step := range []struct {
		name  string
		visit device.CheckIn
		at    time.Duration
		want  int
	}{
		{"the first", changed(same), 0, 1},
		{"a minute later", changed(same), time.Minute, 0},
		{"ten minutes after the first", changed(same), 10 * time.Minute, 0},
		{"a little more", changed(same), 10*time.Minute + time.Second, 1},
		{"soon again", changed(same), 11 * time.Minute, 0},
		{"new firmware", changed(func(c *device.CheckIn) { c.Firmware = "1.2.5" }), 12 * time.Minute, 1},
		{"the old one", changed(same), 13 * time.Minute, 1},
		{"another board", changed(func(c *device.CheckIn) { c.Board = "bread" }), 14 * time.Minute, 1},
		{"another language", changed(func(c *device.CheckIn) { c.Language = "zh-CN" }), 15 * time.Minute, 1},
		{"another address", changed(func(c *device.CheckIn) { c.Address = "192.168.1.41" }), 16 * time.Minute, 1},
		{"another base", changed(func(c *device.CheckIn) { c.BaseURL = "http://perch:80" }), 17 * time.Minute, 1},
		{"as at first", changed(same), 18 * time.Minute, 1},
		{"a claim", from(robotA, "two"), 19 * time.Minute, 1},
		{"the same claim", from(robotA, "two"), 20 * time.Minute, 0},
		{"another claim", from(robotA, "three"), 21 * time.Minute, 1},
		{"the bound one again", from(robotA, "one"), 22 * time.Minute, 0},
	} {
		r.CheckIn(step.visit, noon.Add(step.at))
		if got := kept.writes(); got != step.want {
			t.Errorf("%s: %d writes, want %d", step.name, got, step.want)
		}
		if step.visit.Client == device.NewClient("one") {
			seen = noon.Add(step.at)
		}
		if robot, err := r.Get(robotA); err != nil || !robot.LastSeen.Equal(seen) {
			t.Errorf("%s: last seen %v (%v)", step.name, robot.LastSeen, err)
		}
	}
}

func TestRecordSeen(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	r.CheckIn(from(robotA, "one"), noon)
	kept.writes()
	r.RecordSeen(robotA, noon.Add(5*time.Minute))
	if n := kept.writes(); n != 0 {
		t.Errorf("a channel soon after the boot is %d writes", n)
	}
	r.RecordSeen(robotA, noon.Add(48*time.Hour))
	r.RecordSeen("a0b1c2d3e4ff", noon)
	robot, err := device.NewRegistry(key, device.AdoptOpen, kept).Get(robotA)
	if err != nil || !robot.LastSeen.Equal(noon.Add(48*time.Hour)) || !robot.Booted.Equal(noon) || len(r.List()) != 1 {
		t.Errorf("kept is %+v (%v)", robot, err)
	}
}

func TestStoredVisitIsNeverLongStale(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	for at := time.Duration(0); at <= time.Hour; at += 6 * time.Minute {
		r.CheckIn(from(robotA, "one"), noon.Add(at))
		for _, robot := range kept.All() {
			if stale := noon.Add(at).Sub(robot.LastSeen); stale > 10*time.Minute {
				t.Fatalf("after %v the visit that is kept is %v old", at, stale)
			}
		}
	}
	r = device.NewRegistry(key, device.AdoptOpen, kept)
	kept.writes()
	r.CheckIn(from(robotA, "one"), noon.Add(time.Hour))
	if n := kept.writes(); n != 0 {
		t.Errorf("a visit right after a restart is %d writes", n)
	}
}

// TestFlush: Flush stores the times at which robots were last seen, and writes no record that is unchanged.
func TestFlush(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	r.CheckIn(from(robotA, "one"), noon)
	r.CheckIn(from(robotA, "one"), noon.Add(time.Minute))
	r.Flush()
	if robot, err := device.NewRegistry(key, device.AdoptOpen, kept).Get(robotA); err != nil || !robot.LastSeen.Equal(noon.Add(time.Minute)) {
		t.Errorf("kept is %+v (%v)", robot, err)
	}
	kept.writes()
	r.Flush()
	if n := kept.writes(); n != 0 {
		t.Errorf("what is stored is %d writes", n)
	}
}

func TestNothingIsWrittenByLooking(t *testing.T) {
	kept, r := newRegistry(device.AdoptCode)
	robot, _ := r.CheckIn(from(robotA, "one"), noon)
	kept.writes()
	r.List()
	r.Code(robot, noon)
	_, _ = r.Get(robotA)
	_, _ = r.Admit(robotA, device.NewClient("one"), "wrong")
	_, _ = r.Adopt("999999999", noon)
	_ = r.Forget(robotB)
	r.StoreTools(robotB, []device.Tool{{Name: "of nobody"}})
	if n := kept.writes(); n != 0 {
		t.Errorf("%d writes", n)
	}
}

func TestToolsBelongToAFirmware(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	tools := []device.Tool{{Name: "self.get_device_status", Schema: device.Schema{Type: "object", Properties: map[string]device.Argument{}}}}
	r.CheckIn(from(robotA, "one"), noon)
	r.StoreTools(robotA, tools)
	if robot, err := r.Get(robotA); err != nil || robot.Tools != nil {
		t.Errorf("the tools of a stranger are kept: %v (%v)", robot.Tools, err)
	}
	adopt(t, r, robotA)
	kept.writes()
	r.StoreTools(robotA, tools)
	if n := kept.writes(); n != 1 {
		t.Errorf("the first list is %d writes", n)
	}
	r = device.NewRegistry(key, device.AdoptOpen, kept)
	r.StoreTools(robotA, tools)
	if n := kept.writes(); n != 0 {
		t.Errorf("the same list, after a restart, is %d writes", n)
	}
	if robot, err := r.Get(robotA); err != nil || len(robot.KnownTools()) != 1 {
		t.Errorf("known tools: %v (%v)", robot.KnownTools(), err)
	}
	newer := from(robotA, "one")
	newer.Firmware = "1.3.0"
	if robot, _ := r.CheckIn(newer, noon); robot.KnownTools() != nil {
		t.Errorf("the new firmware has the tools of the old one: %v", robot.KnownTools())
	}
	kept.writes()
	r.StoreTools(robotA, tools) // the same tools, now listed by the new firmware
	if robot, err := r.Get(robotA); err != nil || len(robot.KnownTools()) != 1 || kept.writes() != 1 {
		t.Errorf("once it has listed them: %v (%v)", robot.KnownTools(), err)
	}
}

func TestClaimsSurviveARestart(t *testing.T) {
	kept, r := newRegistry(device.AdoptCode)
	r.CheckIn(from(robotA, "first"), noon)
	r.CheckIn(from(robotA, "last"), noon.Add(time.Minute))
	r = device.NewRegistry(key, device.AdoptCode, kept)
	for _, after := range []time.Duration{2 * time.Minute, 12 * time.Minute, 29 * 24 * time.Hour} {
		if _, err := r.Adopt(string(robotA), noon.Add(after)); !errors.Is(err, device.ErrContested) ||
			!strings.Contains(err.Error(), `Client-Id "last" from 192.168.1.40 at 2026-07-27T12:01:00Z; Client-Id "first" from`) {
			t.Errorf("after %s: %v", after, err)
		}
	}
	if robot, err := r.AdoptClient(robotA, "first"); err != nil || robot.Client != device.NewClient("first") || !r.Trusts(robotA) {
		t.Errorf("adopted %+v (%v)", robot.Client, err)
	}
}

// TestClockJumpKeepsAges: ClockJumped moves the times of a robot that has checked in since the start, and not
// those of a robot that was seen only in an earlier run. Tokens and codes do not change.
func TestClockJumpKeepsAges(t *testing.T) {
	const earlier, here = device.ID("a0b1c2d3e4f4"), device.ID("a0b1c2d3e4f5")
	for name, by := range map[string]time.Duration{"five years on": 5 * 365 * 24 * time.Hour, "a day back": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			kept := newTable()
			device.NewRegistry(device.Key("key"), device.AdoptOpen, kept).CheckIn(from(earlier, "c4"), noon.Add(-time.Hour))
			r := device.NewRegistry(device.Key("key"), device.AdoptOpen, kept)
			_, admission := r.CheckIn(from(here, "c5"), noon)
			r.ClockJumped(by)
			now := noon.Add(by).Add(time.Minute)

			for id, ago := range map[device.ID]time.Duration{here: time.Minute, earlier: by + time.Hour + time.Minute} {
				for when, read := range map[string]*device.Registry{"at once": r, "after a restart": device.NewRegistry(device.Key("key"),
					device.AdoptOpen, kept)} {
					robot, err := read.Get(id)
					if err != nil || now.Sub(robot.LastSeen) != ago || now.Sub(robot.FirstSeen) != ago || now.Sub(robot.Booted) != ago {
						t.Errorf("%s, %s was seen %s ago, first %s, booted %s, want %s; %v", when, id,
							now.Sub(robot.LastSeen), now.Sub(robot.FirstSeen), now.Sub(robot.Booted), ago, err)
					}
				}
			}
			if _, err := r.Admit(here, device.NewClient("c5"), admission.Token); err != nil {
				t.Errorf("its token: %v", err)
			}
			kept.writes()
			r.RecordSeen(earlier, now)
			if kept.writes() != 1 {
				t.Error("a visit by the clock as it is now is not kept")
			}
			must.Succeed(t, r.Forget(here))
			r.ClockJumped(by)
			if _, err := r.Get(here); !errors.Is(err, device.ErrUnknownRobot) {
				t.Errorf("who was forgotten is back: %v", err)
			}
		})
	}
}
