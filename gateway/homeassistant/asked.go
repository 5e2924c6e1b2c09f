package homeassistant

import (
	"context"
	"fmt"
)

// askingDialer connects to the broker that Home Assistant has at that time, and to the embedded
// one where it has none.
type askingDialer struct {
	options  Options
	embedded dialer
	begin    chan struct{} // is closed to have the embedded broker run
	begun    bool          // it is: a broker that comes later is for the next start
	found    func(broker string)
}

func (d *askingDialer) dial(ctx context.Context, s session) (link, error) {
	if d.begun {
		return d.embedded.dial(ctx, s)
	}
	address, user, password, err := d.options.Ask(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("which MQTT broker Home Assistant has is not known: %w", err)
	}
	if address == "" {
		d.begun = true
		close(d.begin)
		d.found("embedded")
		return d.embedded.dial(ctx, s)
	}
	o := d.options
	o.Broker, o.User, o.Password = address, user, password
	client, shown, err := o.dialer()
	if err != nil {
		return nil, err
	}
	d.found(shown)
	return client.dial(ctx, s)
}
