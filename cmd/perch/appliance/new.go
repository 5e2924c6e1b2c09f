package appliance

import (
	"time"

	"perch/cmd/perch/config"
)

// New makes an appliance. If it fails, it closes what it has opened.
func New(c *config.Config, o Options) (*Appliance, error) {
	zone, err := c.Zone()
	if err != nil {
		return nil, err
	}
	a := &Appliance{Data: o.Data, Log: o.Log, Started: time.Now(), options: o, zone: zone, restart: make(chan error, 1)}
	a.config.Store(c)
	for _, layer := range []func(*config.Config) error{a.openStorage, a.openListeners, a.newAgents, a.newRobots, a.newPrograms, a.newOwner} {
		if err := layer(c); err != nil {
			a.Close()
			return nil, err
		}
	}
	return a, nil
}
