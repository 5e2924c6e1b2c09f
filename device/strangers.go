package device

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// A stranger is a robot that its owner has not adopted. The registry limits the strangers
// that it stores, in total, per machine and per network, and forgets a stranger after
// 30 days of absence. At a limit it evicts the stranger not seen for longest from the
// machine or network with too many, so that no network displaces another's robots. A
// robot that is claimed from several machines belongs to none of them: otherwise the
// first machine could evict it, and with it the claims of the others. Since a machine
// with two addresses could fill the registry with such robots, they are evicted first.

const (
	mostStrangers    = 200
	mostOfOneMachine = 8
	mostOfOneNetwork = 64
	strangersLast    = 30 * 24 * time.Hour

	// WelcomeLasts is how long a new appliance with open adoption adopts robots.
	WelcomeLasts = time.Hour
	// mostWelcomed bounds the robots of other machines adopted that way.
	mostWelcomed = 8
	// mostAdopted bounds the robots adopted without the owner's decision.
	mostAdopted = 1000
)

// Welcome makes the registry adopt robots that check in before until, under open adoption:
// mostWelcomed at most, since a home does not connect more in an hour. Robots on this
// machine, which are no strangers', do not count.
func (r *Registry) Welcome(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.welcome = until
}

// welcomes reports whether a robot that may talk is adopted at once. A robot that was
// forgotten or replaced is not. r.mu is held.
func (r *Registry) welcomes(robot Robot, c CheckIn, now time.Time) bool {
	if r.adoption != AdoptOpen || robot.Epoch > 0 || r.welcome.IsZero() || !now.Before(r.welcome) || len(r.robots) > mostAdopted {
		return false
	}
	if from, _ := originOf(c.Address); from.loopback {
		return true
	}
	if r.welcomed >= mostWelcomed {
		return false
	}
	r.welcomed++
	return true
}

// Strangers counts the robots that nobody has adopted.
func (r *Registry) Strangers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.strangers())
}

// ForgetStrangers forgets every robot that nobody has adopted, durably, and returns
// them. On an error it returns those already forgotten.
func (r *Registry) ForgetStrangers() ([]ID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.strangers()
	var gone []ID
	for i, robot := range all {
		if err := r.remove(robot, i == len(all)-1); err != nil { // the durable write includes the earlier ones
			return gone, fmt.Errorf("forget %s: %w", robot.ID, err)
		}
		gone = append(gone, robot.ID)
	}
	return gone, nil
}

// strangers returns all strangers, the one heard from longest ago first. r.mu is held.
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

// remove forgets a stranger. If it was adopted before, its epoch stays, or an old token
// would be valid again. r.mu is held.
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
	_ = r.remove(robot, false) // does not fail
	return robot.ID
}

// expire forgets strangers that were away too long. A time in the future is from a
// wrong clock and is set to now. r.mu is held.
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

// evict forgets strangers to make room for a new robot, if its machine, its network
// or the whole registry has too many. r.mu is held.
func (r *Registry) evict(address string) (gone []ID) {
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
			return []ID{r.removeSoon(evictionCandidate(near))}
		}
	}
	if len(all) < mostStrangers {
		return nil
	}
	return []ID{r.removeSoon(evictionCandidate(all))}
}

// evictionCandidate returns the stranger to evict: of the machine with most strangers, the
// one not heard from for longest. A robot claimed from several machines counts for
// the machine with fewest.
func evictionCandidate(strangers []Robot) Robot {
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
	return slices.MaxFunc(strangers, func(a, b Robot) int { return cmp.Compare(fewest(a), fewest(b)) }) // the first of equals
}

// origins returns the machines that claim a robot's MAC, without duplicates.
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

// originOf parses an IP address; it reports false if the address is invalid.
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
