// Package connection keeps an appliance connected to an MQTT broker and publishes its outbox there.
// It can run the embedded broker too. It owns the MQTT client library.
package connection

import (
	"bytes"
	"crypto/sha256"
)

// Message is a message to publish.
type Message struct {
	Topic    string
	Payload  []byte
	Retained bool
	QoS      byte

	// Again makes the payload once more for each publication, so that a retained one need not stay
	// in memory: the discovery of one robot has ten kilobytes. Any goroutine may call it.
	Again func() []byte
	sum   [sha256.Size]byte // of the payload that Again makes
}

// lean returns the message as the outbox stores it: without a payload that Again makes.
func (m Message) lean() Message {
	if m.Again != nil {
		m.Payload, m.sum = nil, sha256.Sum256(m.Payload)
	}
	return m
}

// whole returns the message with its payload.
func (m Message) whole() Message {
	if m.Again != nil {
		m.Payload = m.Again()
	}
	return m
}

// equal reports whether two stored messages under one topic have the same payload.
func (m Message) equal(other Message) bool {
	return bytes.Equal(m.Payload, other.Payload) && m.sum == other.sum
}

// Incoming is a message from the broker.
type Incoming struct {
	Topic    string
	Payload  []byte
	Retained bool
	// Confirm tells the broker that it need not store the message any longer. It does not wait.
	// Nil means that the broker expects no confirmation.
	Confirm func()
}

// Ack confirms the message to the broker, if that expects it.
func (m Incoming) Ack() {
	if m.Confirm != nil {
		m.Confirm()
	}
}
