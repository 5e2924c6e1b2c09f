// Package connection keeps an appliance connected to an MQTT broker, publishes its messages and receives commands. It can
// also keep the embedded broker running. Apart from tests, no other package of the mirror uses the MQTT client library.
package connection

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// Time limits of a connection to a broker.
const (
	connectTimeout = 10 * time.Second
	writeTimeout   = 10 * time.Second
	keepAlive      = 15 * time.Second
	pingTimeout    = 10 * time.Second
)

// stableAfter is the time after which a connection, or a run of the embedded broker, counts as successful. The pause
// before the next attempt is then the minimum again.
const stableAfter = 30 * time.Second

// maxArrived is the size of each queue of received messages and of the queue of confirmations to the broker.
const maxArrived = 256

// Message is a message to publish.
type Message struct {
	Topic    string
	Payload  []byte
	Retained bool
	QoS      byte

	// MakePayload returns the payload for each publication of a retained message, so that the outbox need not hold the
	// payload in memory: the discovery of a robot has about ten kilobytes. MakePayload must be safe for concurrent use.
	// If it is nil, the outbox holds the payload.
	MakePayload func() []byte
	sum         [sha256.Size]byte // hash of Payload if MakePayload is set
}

// Incoming is a message from the broker.
type Incoming struct {
	Topic    string
	Payload  []byte
	Retained bool
	// Confirm tells the broker that the message is handled and need not be delivered again. Confirm does not block.
	// It is nil if the broker expects no confirmation.
	Confirm func()
}

// Ack confirms the message if the broker expects a confirmation.
func (m Incoming) Ack() {
	if m.Confirm != nil {
		m.Confirm()
	}
}

// Session holds the parameters of one connection.
type Session struct {
	Suffix string   // appended to the client ID
	Will   *Message // published by the broker if the connection is lost; may be nil
	Clean  bool     // the broker discards the session stored for this client ID, and stores no new one
	// Receive is called with each message from the broker. It must not block. It returns false if it had to drop the
	// message, because its queue is full.
	Receive func(Incoming) bool
}

// Link is one connection to a broker. It cannot reconnect.
type Link interface {
	// Publish sends a message. Messages are sent in the order of the calls. Publish blocks at most for writeTimeout.
	Publish(m Message) Receipt
	// Subscribe returns once the broker has accepted the subscription. With QoS 1 the broker stores messages
	// while this client is disconnected, unless the session is clean.
	Subscribe(qos byte, filters ...string) error
	// Lost returns a channel that receives the reason if the connection is lost.
	Lost() <-chan error
	// Close ends the connection within half a second. The broker does not publish the will.
	Close()
}

// Receipt reports the outcome of publishing one message.
type Receipt interface {
	Done() <-chan struct{} // closed once the outcome is known
	Error() error          // the outcome, valid once Done is closed
}

func lostError(err error) error { return fmt.Errorf("the connection to the broker was lost: %w", err) }
