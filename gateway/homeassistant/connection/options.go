package connection

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"perch/gateway/homeassistant/topic"
	"perch/language"
)

// Options configures a Connection. A field may be empty only if its comment says so.
type Options struct {
	// Broker is "embedded", "none", "supervisor", or the address of a broker, such as mqtt://host:1883,
	// mqtts://host:8883 or ws://host:9001/mqtt.
	Broker string
	// FindBroker returns the address of Home Assistant's broker, and its user and password. It is used only if Broker
	// is "supervisor", and is called before each connection attempt. If it returns an empty address, the
	// embedded broker is started and used from then on.
	FindBroker func(context.Context) (address, user, password string, err error)
	Listen     string // address of the embedded broker; ":1883" if empty
	// User and Password are the account at the broker; if Broker is "supervisor", only at the embedded broker. They may be
	// empty unless Broker is "embedded" or "supervisor".
	User, Password string
	CA             []byte // certificates of the authorities that may sign the broker's certificate, in PEM; nil for the system's authorities
	// Serve runs the embedded broker on a listener, which it leaves open. It returns nil after ctx has ended,
	// and otherwise the reason why the broker has ended.
	Serve   func(ctx context.Context, l *net.TCPListener, user, password string) error
	Base    string    // beginning of this appliance's topics, such as "perch"
	Prefix  string    // beginning of Home Assistant's topics, such as "homeassistant"
	ID      string    // ID of the appliance, 8 hex digits
	Started time.Time // when the appliance was started
	Log     *slog.Logger
}

// Topics returns the names of the appliance's topics.
func (o Options) Topics() topic.Names {
	return topic.Names{Base: o.Base, Prefix: o.Prefix, Appliance: o.ID}
}

// Check returns an error if New would reject the options. The error has a line for each invalid name of a topic, or
// only the first of the other faults.
func (o Options) Check() error {
	_, _, err := o.client()
	return err
}

// ClientID returns the prefix of the client IDs that an appliance uses for its connections.
func ClientID(appliance string) string { return "perch-" + appliance }

// client returns a dialer for the configured broker, and the broker's address without user and password. If Broker is
// "none", "embedded" or "supervisor", the address is this word, and the dialer has no URL yet.
func (o Options) client() (client *pahoDialer, address string, err error) {
	err = errors.Join(topic.Check("mqtt.base_topic", o.Base), topic.Check("mqtt.discovery_prefix", o.Prefix), topic.Check("mqtt", o.ID))
	if err == nil && o.Base == o.Prefix {
		err = language.OfKey("mqtt.base_topic", fmt.Errorf("it and mqtt.discovery_prefix are both %q; they must differ", o.Base))
	}
	if err != nil {
		return nil, "", err
	}
	client = &pahoDialer{user: o.User, password: o.Password, id: ClientID(o.ID)}
	switch o.Broker {
	case "none":
		return client, o.Broker, nil
	case "embedded", "supervisor":
		if o.User == "" || o.Password == "" {
			err = language.OfKey("mqtt", errors.New("the embedded broker needs a user and a password"))
		}
		return client, o.Broker, err
	}
	u, err := url.Parse(o.Broker)
	if err != nil || u.Hostname() == "" {
		// The error does not contain the address, because an invalid address may contain a password.
		return nil, "", language.OfKey("mqtt.broker", errors.New("it is embedded, none or an address such as mqtt://192.168.1.9:1883"))
	}
	if u.User != nil {
		return nil, "", language.OfKey("mqtt.broker",
			errors.New("it holds a user or a password; give them as mqtt.user and mqtt.password, which are never shown"))
	}
	ports := map[string]string{"mqtt": "1883", "mqtts": "8883", "ws": "80", "wss": "443"}
	port, known := ports[u.Scheme]
	if !known {
		return nil, "", language.OfKey("mqtt.broker",
			fmt.Errorf("it begins with %.20q; it must be mqtt://, mqtts://, ws:// or wss://", u.Scheme+"://"))
	}
	if u.Port() == "" {
		u.Host += ":" + port
	}
	client.url = u
	if u.Scheme == "mqtts" || u.Scheme == "wss" {
		if client.tls, err = tlsConfig(u.Hostname(), o.CA); err != nil {
			return nil, "", err
		}
	}
	return client, u.Scheme + "://" + u.Host, nil
}

// tlsConfig returns the TLS configuration for a broker. authority is nil or holds certificates in PEM.
func tlsConfig(host string, authority []byte) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if authority != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(authority) {
			return nil, language.OfKey("mqtt.ca", errors.New("it holds no certificate in PEM"))
		}
	}
	return c, nil
}
