package homeassistant

import (
	"time"

	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
)

// bridge publishes the appliance itself.
type bridge struct {
	announcements
	o         *Options
	info      state.BridgeInfo // as it was last published
	url       string           // as it was last announced
	announced bool
}

func newBridge(o *Options, a announcements) *bridge {
	return &bridge{announcements: a, o: o, info: state.BridgeInfo{ID: o.ID, Version: o.Version, Started: o.Started.UTC().Truncate(time.Second)}}
}

// refresh publishes the bridge's discovery if its address has changed, and its info.
func (b *bridge) refresh() {
	if url := b.o.URL(); !b.announced || url != b.url {
		b.announced, b.url = true, url
		b.announce("bridge", discovery.Bridge(b.topics, b.o.Version, url, b.before("bridge")), nil)
	}
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
