package appliance

import (
	"context"
)

// Alive calls checkAlive.
func (a *Appliance) Alive(ctx context.Context) error { return a.checkAlive(ctx) }
