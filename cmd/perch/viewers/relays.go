package viewers

import (
	"fmt"
	"os"

	"perch/cmd/perch/config"
	"perch/gateway/avatar/relay"
	"perch/health"
)

// newRelays makes what shows the agents in avatar programs that Perch connects to.
func newRelays(c *config.Config, o relay.Options) (*relay.Relays, error) {
	if home, err := os.UserHomeDir(); err == nil {
		o.Home = home // a service may have none; then addresses have to be configured
	}
	o.Targets = c.Relays
	return relay.New(o)
}

// relayConditions returns the conditions of the relays.
func relayConditions(relays []relay.Status) (all []health.Part) {
	for _, r := range relays {
		part := health.Part{Name: "relay " + r.Name, OK: r.OK, Since: r.Since, Note: r.Note}
		if part.Note == "" {
			part = part.Saying(fmt.Sprintf("%s at %s", r.Title, r.URL))
		}
		all = append(all, part)
	}
	return all
}
