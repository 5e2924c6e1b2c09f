package appliance

import "context"

// Alive is what the service manager's watchdog asks.
func (a *Appliance) Alive(ctx context.Context) error { return a.alive(ctx) }

// StopLasts is how long the doors may take to close.
const StopLasts = downloadsWithin + stopWithin
