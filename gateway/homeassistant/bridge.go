package homeassistant

import (
	"maps"
	"time"

	"golang.org/x/time/rate"

	"perch/device"

	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
)

// bridge publishes the appliance itself.
type bridge struct {
	announcements
	o    *Options
	info state.BridgeInfo // as it was last published
}

func newBridge(o *Options, a announcements) *bridge {
	return &bridge{announcements: a, o: o, info: state.BridgeInfo{ID: o.ID, Version: o.Version, Started: o.Started.UTC().Truncate(time.Second)}}
}

// refresh publishes the bridge's discovery and info if they have changed.
func (b *bridge) refresh() {
	b.announce("bridge", discovery.Bridge(b.topics, b.o.Version, b.o.URL(), b.before("bridge")), nil)
	b.info.Host, b.info.Taken = b.o.Host()
	b.state(b.topics.Bridge("info"), b.info)
}

// setCounts publishes the bridge's info if a number in it has changed.
func (b *bridge) setCounts(robots, waiting, strangers int) {
	if robots != b.info.Robots || waiting != b.info.Waiting || strangers != b.info.Strangers {
		b.info.Robots, b.info.Waiting, b.info.Strangers = robots, waiting, strangers
		b.refresh()
	}
}

// countEvery is the shortest time between two numbers of strangers. Any machine in the network can
// invent some.
const countEvery = time.Second

// strangers are the robots that their owner has not adopted. They are published as a number, and
// with an event for each that comes, and not as devices.
type strangers struct {
	present   map[device.ID]bool
	announced map[device.ID]bool // of those present
	pace      *rate.Limiter      // of the events
	count     int                // as it is to be published
	changed   time.Time          // when count did
	due       time.Time          // when count is to be updated; zero is never
}

func newStrangers() *strangers {
	return &strangers{present: map[device.ID]bool{}, announced: map[device.ID]bool{}, pace: newAllowance()}
}

// set replaces the strangers that are present.
func (s *strangers) set(present map[device.ID]bool) {
	s.present = present
	maps.DeleteFunc(s.announced, func(id device.ID, _ bool) bool { return !present[id] })
}

// arrive adds a stranger that has checked in, and reports whether to publish that: once for each, and
// for no more than anybody would read.
func (s *strangers) arrive(id device.ID, at time.Time) bool {
	if s.announced[id] {
		return false
	}
	s.announced[id], s.present[id] = true, true
	return s.pace.AllowN(at, 1)
}

// update updates the count, at most once each countEvery.
func (s *strangers) update(now time.Time) {
	n := len(s.present)
	switch {
	case n == s.count:
		s.due = time.Time{}
	case now.Sub(s.changed) >= countEvery:
		s.count, s.changed, s.due = n, now, time.Time{}
	default:
		s.due = s.changed.Add(countEvery)
	}
}
