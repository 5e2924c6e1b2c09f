// Package connection keeps an appliance connected to an MQTT broker and publishes its outbox there.
// It can run the embedded broker too. It owns the MQTT client library.
package connection

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// Deadlines of a connection to a broker.
const (
	connectTimeout = 10 * time.Second
	writeTimeout   = 10 * time.Second
	keepAlive      = 15 * time.Second
	pingTimeout    = 10 * time.Second
)

// steadyAfter is how long a connection or the embedded broker has to last until its next failure is
// followed by the shortest wait again.
const steadyAfter = 30 * time.Second

// mostArrived bounds the messages that have arrived and were not yet read, and the messages that were
// read and not yet confirmed to the broker.
const mostArrived = 256

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

// Session holds the parameters of one connection.
type Session struct {
	Suffix string   // of the client id
	Will   *Message // published by the broker if the connection is lost; nil for none
	Clean  bool     // the broker discards what it has stored for this client, and stores nothing
	// Receive is called with each message from the broker. It does not wait, and returns false if it
	// has no room for the message.
	Receive func(Incoming) bool
}

// Link is one connection to a broker. It is used once.
type Link interface {
	// Publish sends messages in the order of the calls. It waits no longer than writeTimeout.
	Publish(m Message) Receipt
	// Subscribe returns once the broker has agreed. With QoS 1 the broker stores messages while
	// this client is disconnected.
	Subscribe(qos byte, filters ...string) error
	// Lost returns a channel that receives the reason when the connection has ended.
	Lost() <-chan error
	// Close ends the connection within half a second. The will is not published.
	Close()
}

// Receipt is the outcome of publishing one message.
type Receipt interface {
	Done() <-chan struct{}
	Error() error
}

func lostError(err error) error { return fmt.Errorf("the connection to the broker was lost: %w", err) }
