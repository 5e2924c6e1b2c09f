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

// publisher adds messages to the outbox.
type publisher struct {
	topics topic.Names
	out    *connection.Outbox
}

// sendRetained publishes a JSON document that the broker retains.
func (p publisher) sendRetained(topic string, document any) {
	p.out.Add(connection.Message{Topic: topic, Payload: encode(document), Retained: true, QoS: 1})
}

// sendRetainedText publishes a text that the broker retains. An empty text deletes the retained message.
func (p publisher) sendRetainedText(topic, text string) {
	p.out.Add(connection.Message{Topic: topic, Payload: []byte(text), Retained: true, QoS: 1})
}

// sendEvent publishes a JSON document that is not retained.
func (p publisher) sendEvent(topic string, document any) {
	p.out.Add(connection.Message{Topic: topic, Payload: encode(document), QoS: 1})
}

// sendTelemetry publishes a JSON document that may be lost.
func (p publisher) sendTelemetry(topic string, document any) {
	p.out.Add(connection.Message{Topic: topic, Payload: encode(document)})
}

// encode returns a document as JSON. It panics on an error, since all documents of this package can be encoded.
func encode(document any) []byte {
	payload, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	return payload
}

// announcements publishes the discovery of devices, and remembers the IDs of the announced components.
type announcements struct {
	publisher
	ids table[[]string] // IDs of components; see Options.Announced
	log *slog.Logger
}

// announcedIDs returns the IDs of all components that were ever announced for a device. device is a key of the table.
func (a announcements) announcedIDs(device string) []string {
	ids, _, err := a.ids.Get(device)
	if err != nil {
		a.log.Warn("the list of what was announced to Home Assistant cannot be read; entities that no longer exist may stay there", "err", err)
	}
	return ids
}

// announcedDevices returns the keys of all announced devices, sorted.
func (a announcements) announcedDevices() []string {
	return slices.Sorted(maps.Keys(maps.Collect(a.ids.All())))
}

// announce publishes the announcement of a device and stores its component IDs. If payload is not nil, the outbox holds
// no payloads in memory. It calls payload instead, with the index of the message in d.Payloads.
func (a announcements) announce(device string, d discovery.Announcement, payload func(step int) []byte) {
	steps := make([]connection.Message, len(d.Payloads))
	for i, encoded := range d.Payloads {
		steps[i] = connection.Message{Topic: d.Topic, Payload: encoded, Retained: true, QoS: 1}
		if payload != nil {
			steps[i].MakePayload = func() []byte { return payload(i) }
		}
	}
	a.out.AddSteps(steps)
	if d.IDs != nil && !slices.Equal(a.announcedIDs(device), d.IDs) {
		a.ids.PutSoon(device, d.IDs)
	}
}

// table stores values by key, on disk.
type table[T any] interface {
	Get(key string) (T, bool, error)
	Put(key string, v T) error // returns once the value is durable
	PutSoon(key string, v T)   // a power cut may undo the change
	DeleteSoon(key string)     // a power cut may undo the change
	All() iter.Seq2[string, T]
}
