package viewers

import (
	"fmt"
	"os"

	"perch/cmd/perch/config"
	"perch/gateway/relay"
	"perch/health"
)

// newRelays makes what shows the agents in avatar programs that Perch connects to.
func newRelays(c *config.Config, o relay.Options) (*relay.Relays, error) {
	if home, err := os.UserHomeDir(); err == nil {
		o.Home = home // a service may have none; then addresses have to be configured
	}
	var err error
	if o.Targets, err = relayTargets(c); err != nil {
		return nil, err
	}
	return relay.New(o)
}

// relayTargets returns the relays' programs of a configuration.
func relayTargets(c *config.Config) (all []relay.Target, err error) {
	for i, r := range c.Relays {
		t, err := r.Target()
		if err != nil {
			return nil, fmt.Errorf("relays.%d: %w", i, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// relayConditions returns the conditions of the relays.
func relayConditions(relays []relay.Shown) (all []health.Part) {
	for _, r := range relays {
		part := health.Part{Name: "relay " + r.Name, OK: r.OK, Since: r.Since, Note: r.Note}
		if part.Note == "" {
			part = part.Saying(fmt.Sprintf("%s at %s", r.Title, r.URL))
		}
		all = append(all, part)
	}
	return all
}
