// Package doctor examines an installation. It reports what works, and for each fault its cause and how
// to correct it.
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

// ExamineFaults reports the faults of a configuration, and the condition of the service. It is called
// instead of Examine if the configuration has faults.
func (d *Examination) ExamineFaults(ctx context.Context, faults config.Faults) {
	for _, fault := range faults {
		d.Findings = append(d.Findings, finding{Part: "configuration", Note: fault.String()})
	}
	d.checkUnit(ctx)
}

// Examine runs all checks.
func (d *Examination) Examine(ctx context.Context) {
	d.checkConfiguration()
	d.CheckSecrets()
	d.checkAppliance(ctx)
	d.checkUnit(ctx)
	d.CheckCertificate()
	d.checkDisk()
	d.CheckDatabase()
	d.checkFiles()
	d.checkClock()
	d.checkPorts()
	d.checkEngines(ctx)
	d.checkMQTT(ctx)
	d.checkName(ctx)
	d.checkRobots(ctx)
}

// checkAppliance reports the condition of the appliance that runs on this machine.
func (d *Examination) checkAppliance(ctx context.Context) {
	c, err := d.Connect(d.named)
	switch {
	case errors.Is(err, ErrNoneRuns):
		d.add("appliance", nil, "does not run; this report shows what it would find")
		return
	case err != nil:
		d.locked = true
		d.add("appliance", err, "")
		return
	}
	var status admin.Status
	if err := c.Get(ctx, "/api/v1/status", &status); err != nil {
		d.add("appliance",
			fmt.Errorf("it has a socket, but does not respond: %w; if none runs, start one, which also removes the socket of an earlier one", err), "")
		return
	}
	d.running, d.status = c, &status
	if status.Version != d.Version {
		err = fmt.Errorf("version %s runs, but this program is %s; restart the appliance to run the installed version", status.Version, d.Version)
	}
	d.add("appliance", err, fmt.Sprintf("version %s runs since %s with %v, %d connected",
		status.Version, status.Started.Local().Format(time.DateTime), countRobots(status.Robots), status.Reached))
	for _, p := range status.Parts {
		f := finding{Ok: p.OK, Part: p.Name, Note: p.Note, warn: p.Name == "language"}
		if list, _, hasKind := strings.Cut(p.Name, " "); hasKind && slices.Contains(engineLists, list) {
			d.reported = append(d.reported, f)
			continue
		}
		d.Findings = append(d.Findings, f)
	}
}
