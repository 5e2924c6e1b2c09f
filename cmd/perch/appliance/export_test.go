package appliance

import (
	"context"
)

// Alive is what the service manager's watchdog asks.
func (a *Appliance) Alive(ctx context.Context) error { return a.checkAlive(ctx) }
