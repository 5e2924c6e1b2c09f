package connection

import (
	"context"
	"fmt"
	"net/url"
)

// embeddedDialer connects to the embedded broker once that listens.
type embeddedDialer struct {
	supervisor *supervisor
	client     *pahoDialer
}

// Dial implements Dialer.
func (d embeddedDialer) Dial(ctx context.Context, s Session) (Link, error) {
	at, err := d.supervisor.address(ctx)
	if err != nil {
		return nil, err
	}
	client := *d.client
	client.url = &url.URL{Scheme: "mqtt", Host: at}
	return client.Dial(ctx, s)
}

// supervisorDialer connects to the broker that Home Assistant's supervisor names. If it names none,
// the embedded broker is started, and used until the program ends.
type supervisorDialer struct {
	options  Options
	embedded Dialer
	start    chan struct{} // is closed to start the embedded broker
	started  bool
	resolved func(broker string) // is called with the broker's address before each attempt
}

// Dial implements Dialer.
func (d *supervisorDialer) Dial(ctx context.Context, s Session) (Link, error) {
	if d.started {
		return d.embedded.Dial(ctx, s)
	}
	address, user, password, err := d.options.Ask(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("which MQTT broker Home Assistant has is not known: %w", err)
	}
	if address == "" {
		d.started = true
		close(d.start)
		d.resolved("embedded")
		return d.embedded.Dial(ctx, s)
	}
	o := d.options
	o.Broker, o.User, o.Password = address, user, password
	client, shown, err := o.client()
	if err != nil {
		return nil, err
	}
	d.resolved(shown)
	return client.Dial(ctx, s)
}
