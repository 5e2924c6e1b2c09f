// Package doctor examines an installation: it says what works, and names cause and cure of what
// does not.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/cmd/perch/config"
	"perch/gateway/owner/admin"
)

// Misconfigured reports the faults of a configuration, and the condition of the service.
func (d *Examination) Misconfigured(ctx context.Context, wrong config.Faults) {
	for _, fault := range wrong {
		d.Findings = append(d.Findings, finding{Part: "configuration", Note: fault.String()})
	}
	d.unit(ctx)
}

// Examine runs all checks.
func (d *Examination) Examine(ctx context.Context) {
	d.Configuration()
	d.Secrets()
	d.Appliance(ctx)
	d.unit(ctx)
	d.Encryption()
	d.Disk()
	d.Database()
	d.Files()
	d.Clock()
	d.Ports()
	d.engines(ctx)
	d.mqtt(ctx)
	d.names(ctx)
	d.robots(ctx)
}

// Appliance asks the appliance that runs on this machine for its condition.
func (d *Examination) Appliance(ctx context.Context) {
	c, err := d.Connect(d.named)
	switch {
	case errors.Is(err, ErrNoneRuns):
		d.add("appliance", nil, "does not run; this is what it would find")
		return
	case err != nil:
		d.locked = true
		d.add("appliance", err, "")
		return
	}
	var status admin.Status
	if err := c.Get(ctx, "/api/v1/status", &status); err != nil {
		d.add("appliance",
			fmt.Errorf("it has a socket, and cannot be asked: %w; if none runs, start one: what is left of an earlier one is put away then", err), "")
		return
	}
	d.running, d.status = c, &status
	if status.Version != d.Version {
		err = fmt.Errorf("version %s runs, and this program is %s; restart the appliance to run what is installed", status.Version, d.Version)
	}
	d.add("appliance", err, fmt.Sprintf("version %s runs since %s with %v, %d connected",
		status.Version, status.Started.Local().Format(time.DateTime), robots(status.Robots), status.Reached))
	for _, p := range status.Parts {
		f := finding{Ok: p.OK, Part: p.Name, Note: p.Note, warn: p.Name == "language"}
		if list, _, of := strings.Cut(p.Name, " "); of && slices.Contains(engineLists, list) {
			d.reported = append(d.reported, f)
			continue
		}
		d.Findings = append(d.Findings, f)
	}
}
