// Package doctor examines an installation, for the command perch doctor and for the owner's page. It reports
// what works, and for each fault its cause and how to correct it.
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

// ExamineFaults reports the faults of a configuration, and the state of the systemd unit. It is called
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
	d.checkSpeech()
	d.checkEngines(ctx)
	d.checkMusic(ctx)
	d.checkMQTT(ctx)
	d.checkName(ctx)
	d.checkRobots(ctx)
}

// checkAppliance reports the condition of the appliance that runs on this machine. It sets d.running,
// d.status, d.locked and d.reported, so it must be called before the checks that use them.
func (d *Examination) checkAppliance(ctx context.Context) {
	c, err := d.Connect(d.named)
	switch {
	case errors.Is(err, ErrNotRunning):
		d.add("appliance", nil, "is not running; the lines of this report say what would work if it were started")
		return
	case err != nil:
		d.locked = true
		d.add("appliance", err, "")
		return
	}
	status, err := d.settledStatus(ctx, c)
	if err != nil {
		d.add("appliance",
			fmt.Errorf("its socket exists, but its status cannot be read: %w; if Perch is not running, start it: it replaces the socket that was left behind", err), "")
		return
	}
	d.running, d.status = c, &status
	if status.Version != d.Version {
		err = fmt.Errorf("version %s runs, but this program is %s; restart the appliance to run the installed version", status.Version, d.Version)
	}
	d.add("appliance", err, fmt.Sprintf("version %s has been running since %s; %v known, %d of them reachable",
		status.Version, status.Started.Local().Format(time.DateTime), countRobots(status.Robots), status.Reached))
	for _, p := range status.Parts {
		// The part "language" lists what is missing for a robot's language. This is a warning, because all other
		// languages work.
		f := finding{Ok: p.OK, Part: p.Name, Note: p.Note, warn: p.Name == "language"}
		// The name of an engine is its list and kind, such as "brain reflex". checkEngines combines the finding of an
		// engine with the result of its trial.
		if list, _, hasKind := strings.Cut(p.Name, " "); hasKind && slices.Contains(engineLists, list) {
			d.reported = append(d.reported, f)
			continue
		}
		d.Findings = append(d.Findings, f)
	}
}

// settledStatus returns the status of the running appliance. Some parts, such as the announcement on the network, work
// only some seconds after the start. While a part does not work, settledStatus therefore waits until settleTime after
// the start.
func (d *Examination) settledStatus(ctx context.Context, c APIClient) (status admin.Status, err error) {
	const settleTime, pause = 10 * time.Second, 500 * time.Millisecond
	for range settleTime / pause {
		status = admin.Status{} // the decoder does not reset fields that the response lacks
		err = c.Get(ctx, "/api/v1/status", &status)
		if err != nil || d.now().Sub(status.Started) > settleTime || !slices.ContainsFunc(status.Parts, func(p admin.Part) bool { return !p.OK }) {
			break
		}
		select {
		case <-ctx.Done():
			return status, nil
		case <-time.After(pause):
		}
	}
	return status, err
}
