package homeassistant

import (
	"maps"
	"time"

	"golang.org/x/time/rate"

	"perch/device"

	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
)

// bridge publishes the device and the state of the appliance, which is the machine that runs Perch.
type bridge struct {
	announcements
	o    *Options
	info state.BridgeInfo // the last published info
}

func newBridge(o *Options, a announcements) *bridge {
	return &bridge{announcements: a, o: o, info: state.BridgeInfo{ID: o.ID, Version: o.Version, Started: o.Started.UTC().Truncate(time.Second)}}
}

// refresh publishes the discovery and the info of the bridge if they have changed.
func (b *bridge) refresh() {
	b.announce("bridge", discovery.Bridge(b.topics, b.o.Version, b.o.URL(), b.announcedIDs("bridge")), nil)
	b.info.Host, b.info.Taken = b.o.Host()
	b.sendRetained(b.topics.Bridge("info"), b.info)
}

// setCounts publishes the info of the bridge if one of the counts has changed.
func (b *bridge) setCounts(robots, waiting, strangers int) {
	if robots != b.info.Robots || waiting != b.info.Waiting || strangers != b.info.Strangers {
		b.info.Robots, b.info.Waiting, b.info.Strangers = robots, waiting, strangers
		b.refresh()
	}
}

// strangers tracks the robots that their owner has not adopted. The mirror publishes their count and an
// event for each new stranger, but no devices.
type strangers struct {
	present   map[device.ID]bool
	announced map[device.ID]bool // present strangers whose arrival was handled
	pace      *rate.Limiter      // limits how many arrivals are published, since any machine can pretend to be many robots
	counts    *rate.Limiter      // limits how often arrivals change count; set counts the arrivals above the limit
	count     int                // number of strangers to publish
}

func newStrangers() *strangers {
	return &strangers{present: map[device.ID]bool{}, announced: map[device.ID]bool{}, pace: newLimiter(),
		counts: rate.NewLimiter(rate.Every(time.Second), 1)}
}

// set replaces the set of strangers that are present.
func (s *strangers) set(present map[device.ID]bool) {
	s.present, s.count = present, len(present)
	maps.DeleteFunc(s.announced, func(id device.ID, _ bool) bool { return !present[id] })
}

// arrive adds a stranger that has checked in. It reports whether to publish the arrival, which is true once
// for each stranger and within the limit of pace.
func (s *strangers) arrive(id device.ID, at time.Time) bool {
	if s.announced[id] {
		return false
	}
	s.announced[id], s.present[id] = true, true
	if s.counts.AllowN(at, 1) {
		s.count = len(s.present)
	}
	return s.pace.AllowN(at, 1)
}
