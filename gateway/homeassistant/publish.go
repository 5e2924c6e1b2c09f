package homeassistant

import (
	"encoding/json"
	"iter"
	"log/slog"
	"maps"
	"slices"

	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/topic"
)

// publisher puts documents into the outbox.
type publisher struct {
	topics topic.Names
	out    *connection.Outbox
}

// state publishes a document that the broker retains.
func (p publisher) state(topic string, document any) {
	p.out.Add(connection.Message{Topic: topic, Payload: encode(document), Retained: true, QoS: 1})
}

// status publishes a word that the broker retains.
func (p publisher) status(topic, word string) {
	p.out.Add(connection.Message{Topic: topic, Payload: []byte(word), Retained: true, QoS: 1})
}

// event publishes a document that is not retained.
func (p publisher) event(topic string, document any) {
	p.out.Add(connection.Message{Topic: topic, Payload: encode(document), QoS: 1})
}

// telemetry publishes a document that may be lost.
func (p publisher) telemetry(topic string, document any) {
	p.out.Add(connection.Message{Topic: topic, Payload: encode(document)})
}

// encode encodes a document of this package, which cannot fail.
func encode(document any) []byte {
	payload, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	return payload
}

// announcements publishes discovery and remembers the ids of what was announced.
type announcements struct {
	publisher
	ids table[[]string]
	log *slog.Logger
}

// before returns the ids of everything that was ever announced for a device.
func (a announcements) before(device string) []string {
	ids, _, err := a.ids.Get(device)
	if err != nil {
		a.log.Warn("the list of what was announced to Home Assistant cannot be read; entities that no longer exist may stay there", "err", err)
	}
	return ids
}

// devices returns the keys of all announced devices.
func (a announcements) devices() []string {
	return slices.Sorted(maps.Keys(maps.Collect(a.ids.All())))
}

// announce publishes a device's announcement and remembers its ids. If again can make the payload of
// a step once more, payloads are not kept in memory.
func (a announcements) announce(device string, d discovery.Announcement, again func(step int) []byte) {
	steps := make([]connection.Message, len(d.Payloads))
	for i, payload := range d.Payloads {
		steps[i] = connection.Message{Topic: d.Topic, Payload: payload, Retained: true, QoS: 1}
		if again != nil {
			steps[i].Again = func() []byte { return again(i) }
		}
	}
	a.out.AddSteps(steps)
	if d.IDs != nil && !slices.Equal(a.before(device), d.IDs) {
		a.ids.PutSoon(device, d.IDs)
	}
}

// table stores values by key.
type table[T any] interface {
	Get(key string) (T, bool, error)
	Put(key string, v T) error // durable when it returns
	PutSoon(key string, v T)   // may be lost in a power cut
	DeleteSoon(key string)
	All() iter.Seq2[string, T]
}
