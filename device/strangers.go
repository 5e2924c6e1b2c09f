package device

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// A stranger is a robot that is not adopted. The registry limits the number of strangers in total, per
// host and per network (see origin), and removes a stranger after 30 days of absence. If a new stranger
// exceeds the limit of its host or network, it replaces a stranger of the same host or network, so that
// one host or network cannot displace the robots of others. A stranger of any network is evicted only if
// there are too many strangers in total (see evictionCandidate). For programs on this machine, such as
// simulated robots, only the total limit applies.
//
// A robot that is claimed from several hosts does not count towards the limit of any of them: otherwise
// one host could evict the robot together with the claims of the others. A host with two addresses could
// therefore fill the registry with such robots. That is why evictionCandidate counts them for each of
// their hosts, which makes the strangers of such hosts the first to be evicted.

const (
	maxStrangers        = 200
	maxHostStrangers    = 8
	maxNetworkStrangers = 64
	strangerLife        = 30 * 24 * time.Hour // absence after which a stranger is removed
	pageLife            = 7 * 24 * time.Hour  // absence after which a robot of the page is removed, unless its owner has adopted it or set something

	// WelcomePeriod is how long a new appliance with AdoptOpen adopts robots that check in.
	WelcomePeriod = time.Hour
	// maxWelcomed is the maximum number of robots, not counting those on this machine, that are adopted
	// during WelcomePeriod. No owner is expected to connect more robots in an hour.
	maxWelcomed = 8
	// maxRobots is the number of records above which Welcome adopts no more robots. It includes the records
	// of strangers and of forgotten robots.
	maxRobots = 1000
)

// Welcome makes the registry adopt up to maxWelcomed robots that check in before the time until, if adoption is
// AdoptOpen. Robots on this machine, such as the simulated one, are adopted too and do not count. If an earlier call
// has set a later time, the later time remains; the zero time ends the adoption. Each call starts the count again.
func (r *Registry) Welcome(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.welcomed = 0
	if until.IsZero() || until.After(r.welcome) {
		r.welcome = until
	}
}

// welcomes reports whether an admitted robot is adopted because of Welcome, and counts it if so. Robots
// that were forgotten before, or whose client was replaced, are not adopted. The caller holds r.mu.
func (r *Registry) welcomes(robot Robot, c CheckIn, now time.Time) bool {
	if r.adoption != AdoptOpen || robot.Epoch > 0 || r.welcome.IsZero() || !now.Before(r.welcome) || len(r.robots) > maxRobots {
		return false
	}
	if from, _ := originOf(c.Address); from.loopback {
		return true
	}
	if r.welcomed >= maxWelcomed {
		return false
	}
	r.welcomed++
	return true
}

// Strangers returns the number of strangers.
func (r *Registry) Strangers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.strangers())
}

// ForgetStrangers removes all strangers durably, and returns their IDs. After an error it returns the
// IDs of the strangers that it had removed until then; their removals are not durable yet.
func (r *Registry) ForgetStrangers() ([]ID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	strangers := r.strangers()
	var removed []ID
	for i, robot := range strangers {
		if err := r.remove(robot, i == len(strangers)-1); err != nil { // the last write is durable, and commits the queued ones with it
			return removed, fmt.Errorf("forget %s: %w", robot.ID, err)
		}
		removed = append(removed, robot.ID)
	}
	return removed, nil
}

// strangers returns all strangers, the longest absent first. The caller holds r.mu.
func (r *Registry) strangers() []Robot {
	var strangers []Robot
	for _, robot := range r.robots {
		if !robot.Adopted() && !robot.Forgotten() {
			strangers = append(strangers, robot)
		}
	}
	slices.SortFunc(strangers, func(a, b Robot) int {
		return cmp.Or(a.lastHeard().Compare(b.lastHeard()), cmp.Compare(a.ID, b.ID))
	})
	return strangers
}

// remove removes a robot. If tokens of earlier epochs exist, it leaves a record with the next epoch in the
// robot's place, without which these tokens would be valid again. If durably is false, the disk is written
// later and remove returns no error. The caller holds r.mu.
func (r *Registry) remove(robot Robot, durably bool) (err error) {
	key, tombstone := string(robot.ID), Robot{ID: robot.ID, Epoch: robot.Epoch + 1}
	switch hasEpoch := robot.Epoch > 0; {
	case hasEpoch && durably:
		err = r.records.Put(key, tombstone)
	case hasEpoch:
		r.records.PutSoon(key, tombstone)
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
		r.update(tombstone)
	}
	r.clearState(robot.ID)
	return nil
}

// removeSoon removes a robot without waiting for the disk, and returns its ID. The caller holds r.mu.
func (r *Registry) removeSoon(robot Robot) ID {
	_ = r.remove(robot, false) // never fails
	return robot.ID
}

// expire removes strangers that were absent for longer than strangerLife, and robots of the page that were absent for
// longer than pageLife, have no settings and were not adopted by their owner. It returns the IDs of these robots. It
// does nothing if it ran less than a minute ago. The caller holds r.mu.
func (r *Registry) expire(now time.Time) (removed []ID) {
	if now.Before(r.expires) {
		return nil
	}
	r.expires = now.Add(time.Minute)
	for _, robot := range r.strangers() {
		if now.Sub(robot.lastHeard()) > strangerLife {
			removed = append(removed, r.removeSoon(robot))
		}
	}
	for _, robot := range r.robots {
		if robot.Board == PageBoard && (!robot.Adopted() || robot.Welcomed) && robot.Settings == (Settings{}) && now.Sub(robot.lastHeard()) > pageLife {
			removed = append(removed, r.removeSoon(robot))
		}
	}
	return removed
}

// evict removes a stranger to make room for a new robot from an address, if a limit is reached, and returns
// its ID. The caller holds r.mu.
func (r *Registry) evict(address string) (removed []ID) {
	strangers := r.strangers()
	if from, ok := originOf(address); ok && !from.loopback {
		var sameHost, sameNetwork []Robot // strangers with origins only on this host, or only in this network
		for _, robot := range strangers {
			origins := robot.origins()
			if other := func(o origin) bool { return o.host != from.host }; !slices.ContainsFunc(origins, other) {
				sameHost = append(sameHost, robot)
			}
			if other := func(o origin) bool { return o.network != from.network }; !slices.ContainsFunc(origins, other) {
				sameNetwork = append(sameNetwork, robot)
			}
		}
		switch {
		case len(sameHost) >= maxHostStrangers:
			return []ID{r.removeSoon(sameHost[0])}
		case len(sameNetwork) >= maxNetworkStrangers:
			return []ID{r.removeSoon(evictionCandidate(sameNetwork))}
		}
	}
	if len(strangers) < maxStrangers {
		return nil
	}
	return []ID{r.removeSoon(evictionCandidate(strangers))}
}

// evictionCandidate returns the stranger to evict: the longest absent stranger of the host with the most
// strangers. A robot that is claimed from several hosts counts for each of them, and is ranked by the
// host with the fewest strangers. The argument is sorted like the result of Registry.strangers.
func evictionCandidate(strangers []Robot) Robot {
	count := map[netip.Prefix]int{} // key: host
	for _, robot := range strangers {
		for _, o := range robot.origins() {
			count[o.host]++
		}
	}
	minCount := func(r Robot) int {
		n := len(strangers)
		for _, o := range r.origins() {
			n = min(n, count[o.host])
		}
		return n
	}
	// MaxFunc returns the first of equal elements.
	return slices.MaxFunc(strangers, func(a, b Robot) int { return cmp.Compare(minCount(a), minCount(b)) })
}

// origins returns the origins of a robot and of its claims, one for each host.
func (r Robot) origins() []origin {
	from, _ := originOf(r.LastAddress())
	origins := []origin{from}
	for _, c := range r.claims() {
		if from, _ := originOf(c.Address); !slices.ContainsFunc(origins, func(o origin) bool { return o.host == from.host }) {
			origins = append(origins, from)
		}
	}
	return origins
}

// origin is where a check-in comes from. A host may use any address of an IPv6 /64, so these count as one host.
type origin struct {
	host, network netip.Prefix // IPv4: /32 and /24; IPv6: /64 and /48
	loopback      bool         // whether the host is this machine
}

// originOf returns the origin of an IP address, or false if the address is invalid.
func originOf(address string) (origin, bool) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return origin{}, false
	}
	ip = ip.Unmap().WithZone("")
	host, network := 32, 24
	if ip.Is6() {
		host, network = 64, 48
	}
	return origin{netip.PrefixFrom(ip, host).Masked(), netip.PrefixFrom(ip, network).Masked(), ip.IsLoopback()}, true
}
