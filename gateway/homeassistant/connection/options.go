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

// Options configure a connection. Only fields whose comment says so may be empty.
type Options struct {
	// Broker is "embedded", "none", "supervisor", or the address of a broker:
	// mqtt://host:1883, mqtts://host:8883, ws://host:9001/mqtt.
	Broker string
	// Ask returns Home Assistant's broker. With "supervisor" it is called before each connection
	// attempt. If the address is empty, the embedded broker is started and used from then on.
	Ask            func(context.Context) (address, user, password string, err error)
	Listen         string // address of the embedded broker; empty is ":1883"
	User, Password string // of the broker; may be empty, except for the embedded one
	CA             []byte // the broker's own certificate authority in PEM; nil for the system's
	// Serve runs the embedded broker on a listener until ctx ends, and then returns nil, or until
	// the broker does. It leaves the listener open.
	Serve   func(ctx context.Context, l *net.TCPListener, user, password string) error
	Base    string // the first level of this appliance's topics: "perch"
	Prefix  string // the first level of Home Assistant's topics: "homeassistant"
	ID      string // the appliance's, 8 hex digits
	Started time.Time
	Log     *slog.Logger
}

// Topics returns what the appliance's topics are built from.
func (o Options) Topics() topic.Names {
	return topic.Names{Base: o.Base, Prefix: o.Prefix, Appliance: o.ID}
}

// Check returns what New rejects, one line for each fault.
func (o Options) Check() error {
	_, _, err := o.client()
	return err
}

// ClientID returns the beginning of the client ids of an appliance's connections to its broker.
func ClientID(appliance string) string { return "perch-" + appliance }

// client returns a dialer for the configured broker, and the broker's address for display.
func (o Options) client() (client *pahoDialer, shown string, err error) {
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
		// The address is not shown: a malformed one may hold a password.
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
