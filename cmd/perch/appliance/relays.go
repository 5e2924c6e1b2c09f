package appliance

import (
	"fmt"
	"os"

	"perch/agent"
	"perch/cmd/perch/config"
	"perch/gateway/admin"
	"perch/gateway/relay"
	"perch/store"
)

// newRelays makes what shows the agents in avatar programs.
func (a *Appliance) newRelays() error {
	o := relay.Options{Feed: a.feed, Bus: a.Bus, Words: a.words, Find: a.Robots.Find, Voice: &a.loudness,
		Tokens: store.NewTable[string](a.DB, "relay-tokens"), Gestures: a.gestures.Names(), Name: a.Config().Name, Log: a.Log}
	if home, err := os.UserHomeDir(); err == nil {
		o.Home = home // a service may have none; then addresses have to be configured
	}
	var err error
	if o.Targets, err = relayTargets(a.Config()); err != nil {
		return err
	}
	a.relays, err = relay.New(o)
	return err
}

// relayTargets are the relays' programs as they are configured.
func relayTargets(c *config.Config) (all []relay.Target, err error) {
	for i, r := range c.Relays {
		t, err := targetOf(r)
		if err != nil {
			return nil, fmt.Errorf("relays.%d: %w", i, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// targetOf is a relay's program as it is configured.
func targetOf(r config.Relay) (relay.Target, error) {
	key, err := config.Secret("key", r.Key, r.KeyFile)
	return relay.Target{Kind: r.Kind, Name: r.Name, URL: r.URL, Robot: r.Robot, Secret: key, Words: r.Words}, err
}

// checkRelay reports what is wrong with a relay's configuration.
func checkRelay(r config.Relay) error {
	t, err := targetOf(r)
	if err != nil {
		return err
	}
	return relay.Check(t, agent.StockWords())
}

// relayParts are the conditions of the relays.
func (a *Appliance) relayParts() (all []admin.Part) {
	for _, r := range a.relays.List() {
		part := admin.Part{Name: "relay " + r.Name, OK: r.OK, Since: r.Since, Note: r.Note}
		if part.Note == "" {
			part = part.Saying(fmt.Sprintf("%s at %s", r.Title, r.URL))
		}
		all = append(all, part)
	}
	return all
}
