package device

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// A stranger is a robot that nobody has adopted by name. Strangers cost a
// bounded little: so many are known at a time, so many of one machine and of one
// network, and one that is away for 30 days is forgotten. Where there
// are too many the one that was not seen for longest gives way, of the machine or
// network that has too many, so that no network displaces another's robots. One
// that clients of several machines claim belongs to none of them, or the one that
// came first could displace it, the others' claims with it. So a machine with two
// addresses can fill the registry with strangers that it claims from both; those give
// way first.

const (
	mostStrangers    = 200
	mostOfOneMachine = 8
	mostOfOneNetwork = 64
	strangersLast    = 30 * 24 * time.Hour

	// WelcomeLasts is how long a new appliance with open adoption adopts robots.
	WelcomeLasts = time.Hour
	// mostWelcomed bounds the robots of other machines that are adopted so.
	mostWelcomed = 8
	// mostAdopted bounds the robots that are adopted without a word of the owner's.
	mostAdopted = 1000
)

// Welcome has robots that check in before then adopted, where adoption is open.
// At most 8 are; more than that do not come to a home by themselves in an hour. Those
// of this machine, which no stranger can be, are not counted.
func (r *Registry) Welcome(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.welcome = until
}

// welcomes reports whether a robot that may talk is adopted at once. One that its
// owner has forgotten, or replaced, is not. r.mu is held.
func (r *Registry) welcomes(robot Robot, c CheckIn, now time.Time) bool {
	if r.adoption != AdoptOpen || robot.Epoch > 0 || r.welcome.IsZero() || !now.Before(r.welcome) || len(r.robots) > mostAdopted {
		return false
	}
	if from, _ := originOf(c.Address); from.loopback {
		return true
	}
	if r.came >= mostWelcomed {
		return false
	}
	r.came++
	return true
}

// Strangers counts the robots that nobody has adopted.
func (r *Registry) Strangers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.strangers())
}

// ForgetStrangers forgets every robot that nobody has adopted, durably, and
// returns them. Those that were forgotten until an error are returned with it.
func (r *Registry) ForgetStrangers() ([]ID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.strangers()
	var gone []ID
	for i, robot := range all {
		if i < len(all)-1 {
			gone = append(gone, r.removeSoon(robot))
		} else if err := r.remove(robot, true); err != nil { // which keeps all before it
			return gone, fmt.Errorf("forget %s: %w", robot.ID, err)
		} else {
			gone = append(gone, robot.ID)
		}
	}
	return gone, nil
}

// strangers are sorted: the one heard of longest ago comes first. r.mu is held.
func (r *Registry) strangers() []Robot {
	var all []Robot
	for _, robot := range r.robots {
		if !robot.Adopted() && !robot.Forgotten() {
			all = append(all, robot)
		}
	}
	slices.SortFunc(all, func(a, b Robot) int { return cmp.Or(a.lastHeard().Compare(b.lastHeard()), cmp.Compare(a.ID, b.ID)) })
	return all
}

// remove forgets a stranger. Of one that was adopted before, the epoch stays, or
// an old token would be good again. r.mu is held.
func (r *Registry) remove(robot Robot, durably bool) (err error) {
	key, left := string(robot.ID), Robot{ID: robot.ID, Epoch: robot.Epoch + 1}
	switch again := robot.Epoch > 0; {
	case again && durably:
		err = r.records.Put(key, left)
	case again:
		r.records.PutSoon(key, left)
	case durably:
		err = r.records.Delete(key)
	default:
		r.records.DeleteSoon(key)
	}
	if err != nil {
		return err
	}
	delete(r.robots, robot.ID)
	if robot.Epoch > 0 {
		r.set(left)
	}
	r.drop(robot.ID)
	return nil
}

// removeSoon is remove without waiting for the disk. r.mu is held.
func (r *Registry) removeSoon(robot Robot) ID {
	_ = r.remove(robot, false) // which does not fail
	return robot.ID
}

// expire forgets strangers that were away too long. One seen in the future was seen
// by a wrong clock, and counts from now. r.mu is held.
func (r *Registry) expire(now time.Time) (gone []ID) {
	if now.Before(r.expires) {
		return nil
	}
	r.expires = now.Add(time.Minute)
	for _, robot := range r.strangers() {
		if now.Sub(robot.lastHeard()) > strangersLast {
			gone = append(gone, r.removeSoon(robot))
		}
	}
	return gone
}

// giveWay has a stranger give way to a robot that is new, where its machine, its
// network or the whole registry has too many. r.mu is held.
func (r *Registry) giveWay(address string) (gone []ID) {
	all := r.strangers()
	if from, known := originOf(address); known && !from.loopback {
		var own, near []Robot
		for _, robot := range all {
			origins := robot.origins()
			if other := func(o origin) bool { return o.machine != from.machine }; !slices.ContainsFunc(origins, other) {
				own = append(own, robot)
			}
			if other := func(o origin) bool { return o.network != from.network }; !slices.ContainsFunc(origins, other) {
				near = append(near, robot)
			}
		}
		switch {
		case len(own) >= mostOfOneMachine:
			return []ID{r.removeSoon(own[0])}
		case len(near) >= mostOfOneNetwork:
			return []ID{r.removeSoon(mostNumerous(near))}
		}
	}
	if len(all) < mostStrangers {
		return nil
	}
	return []ID{r.removeSoon(mostNumerous(all))}
}

// mostNumerous is the stranger that gives way to another: of the machine that has
// the most, the one that was not heard of for longest. One that several machines claim
// counts as that of the machine that has the fewest.
func mostNumerous(strangers []Robot) Robot {
	of := map[netip.Prefix]int{}
	for _, robot := range strangers {
		for _, o := range robot.origins() {
			of[o.machine]++
		}
	}
	fewest := func(r Robot) int {
		n := len(strangers)
		for _, o := range r.origins() {
			n = min(n, of[o.machine])
		}
		return n
	}
	return slices.MaxFunc(strangers, func(a, b Robot) int { return cmp.Compare(fewest(a), fewest(b)) }) // the first of those that are equal
}

// origins are the machines from which clients have come with a robot's MAC, each once.
func (r Robot) origins() []origin {
	from, _ := originOf(r.LastAddress())
	all := []origin{from}
	for _, c := range r.claims() {
		if from, _ := originOf(c.Address); !slices.ContainsFunc(all, func(o origin) bool { return o.machine == from.machine }) {
			all = append(all, from)
		}
	}
	return all
}

// origin is where a check-in came from. With IPv6 a machine is a /64 network.
type origin struct {
	machine, network netip.Prefix
	loopback         bool
}

// originOf reads an IP address; false where it is none.
func originOf(address string) (origin, bool) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return origin{}, false
	}
	ip = ip.Unmap().WithZone("")
	machine, network := 32, 24
	if ip.Is6() {
		machine, network = 64, 48
	}
	return origin{netip.PrefixFrom(ip, machine).Masked(), netip.PrefixFrom(ip, network).Masked(), ip.IsLoopback()}, true
}
