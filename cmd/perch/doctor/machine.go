package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/engines"
	"perch/cmd/perch/machine"
	"perch/store"
	"perch/store/archive"
)

// checkConfiguration checks the sentences for the recognizers, and reports the path of the configuration file.
// ExamineFaults reports other faults of the configuration; this method is then not called.
func (d *Examination) checkConfiguration() {
	if err := engines.CheckRecognizers(d.Config); err != nil {
		d.add("configuration", fmt.Errorf("%w; perch check-config says where", err), "")
		return
	}
	d.add("configuration", nil, cmp.Or(d.File, "no file: the defaults"))
}

// checkDisk checks who can write into the data directory, and the free space.
func (d *Examination) checkDisk() {
	dir := store.Nearest(d.Data)
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o002 != 0 && dir == filepath.Clean(d.Data) {
		d.add("data", fmt.Errorf("anybody on this machine can change %s; sudo chmod o-rwx %s", dir, dir), "")
	} else if d.status != nil || d.locked {
		d.add("data", nil, fmt.Sprintf("%s is used by the running appliance", d.Data))
	} else if info != nil && d.service != nil && d.service.May(info, dir, 2) {
		d.add("data", nil, fmt.Sprintf("%s is writable for the service's user %s", d.Data, d.service.Name))
	} else if !config.Writable(dir) {
		d.add("data", fmt.Errorf("%s cannot be written by this user; run as its owner (sudo -u perch), or name another with --data", dir), "")
	} else {
		d.add("data", nil, fmt.Sprintf("%s is writable", d.Data))
	}
	if d.reports("disk") {
		return
	}
	free, err := d.free(dir)
	if err == nil {
		err = machine.CheckRoom(free, d.Data)
	}
	d.add("disk", err, fmt.Sprintf("%d MB free", free>>20))
}

// checkFiles checks the owner's gestures, words, characters and skills. The appliance ignores files
// that it cannot use.
func (d *Examination) checkFiles() {
	faults, hasFiles := checkOwnersFiles(d.Config, d.Data)
	for _, err := range faults {
		d.addIfReadable("files", err, "")
	}
	if hasFiles && len(faults) == 0 {
		d.add("files", nil, "your own gestures, words, characters and skills can be used")
	}
}

// checkClock checks the time of this machine, which robots use. The time is wrong on a Raspberry Pi
// without a network, because the Pi's clock has no battery.
func (d *Examination) checkClock() {
	zone, err := d.Config.Zone()
	if err == nil {
		err = machine.CheckClock(d.now(), d.Built)
	}
	if err != nil {
		d.add("clock", err, "")
	} else if !d.reports("clock") {
		d.add("clock", nil, d.now().In(zone).Format("2006-01-02 15:04 MST"))
	}
}

// CheckDatabase checks who can read the database, and whether a copy of it is damaged. It does nothing if an appliance
// runs, because a running appliance reports the condition of its database.
func (d *Examination) CheckDatabase() {
	if d.status != nil || d.locked {
		return
	}
	path, traces := archive.DatabasePath(d.Data), datadir.Traces(d.Data)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(traces) == 0:
		d.add("database", nil, "does not exist yet; the first start creates it")
		return
	case errors.Is(err, fs.ErrNotExist):
		d.add("database", datadir.ExplainMissing(d.Data, traces, store.Missing(path)), "")
		return
	case err != nil:
		d.addIfReadable("database", err, "")
		return
	case info.Mode().Perm()&0o077 != 0:
		d.add("database", fmt.Errorf("%s can be read by others (mode %#o), and contains conversations; sudo chmod 600 %s", path, info.Mode().Perm(), path),
			"")
		return
	case info.Size() > maxCopied:
		d.add("database", nil, fmt.Sprintf("%d MB, which is too large to be examined here", info.Size()>>20))
		return
	}
	d.store, err = copyDatabase(path, len(traces) > 0)
	if err == nil && d.store.Salvaged() != nil {
		err = d.store.damage(path)
	}
	d.addIfReadable("database", datadir.ExplainMissing(d.Data, traces, err), fmt.Sprintf("%s, %d KB, can be read", path, info.Size()>>10))
}

// checkUnit checks the systemd unit of the service, if this machine uses systemd and the unit is installed.
func (d *Examination) checkUnit(ctx context.Context) {
	exists := func(path string) bool { return store.Exists(filepath.Join(d.root, path)) }
	own, packaged := exists(config.OwnUnit), exists("usr/"+config.PackageUnit) || exists(config.PackageUnit)
	if !own && !packaged || !exists("run/systemd/system") {
		return
	}
	if target, err := os.Readlink(filepath.Join(d.root, config.OwnUnit)); own && err == nil && target == "/dev/null" {
		d.add("unit", errors.New("perch.service is masked and cannot start; sudo systemctl unmask perch"), "")
		return
	}
	if own && packaged {
		d.add("unit",
			fmt.Errorf(
				"/%s replaces the package's unit, so that updates of that unit have no effect; move it away and run sudo systemctl daemon-reload, and make your changes with sudo systemctl edit perch", config.OwnUnit), "")
		return
	}
	text, err := d.services(ctx)
	if err != nil {
		d.add("unit", fmt.Errorf("systemd cannot be asked about perch.service: %w; see systemctl status perch", err), "")
		return
	}
	note, err := UnitCondition(text)
	d.add("unit", err, note)
}

// faultsStatus is the exit code of perch serve for a configuration with faults.
const faultsStatus = "2"

// UnitCondition returns the condition of the service's unit: a note if the unit is in order, or an
// error. text is a result of UnitProperties.
func UnitCondition(text string) (note string, err error) {
	properties := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		properties[name] = value
	}
	restarts, _ := strconv.Atoi(properties["NRestarts"]) // older versions of systemd do not report it
	why := errors.New("sudo journalctl -u perch -n 50 says why")
	if properties["ExecMainStatus"] == faultsStatus {
		why = errors.New("its configuration has faults: sudo perch check-config names them")
	}
	isRestarting := properties["SubState"] == "auto-restart" || properties["ActiveState"] == "activating" && restarts > 0
	switch {
	case properties["ActiveState"] == "failed":
		return "", fmt.Errorf("perch.service has failed (%s); %w", properties["Result"], why)
	case isRestarting && restarts <= 1:
		return "", fmt.Errorf("perch.service has ended, and is being restarted; %w", why)
	case isRestarting:
		return "", fmt.Errorf("perch.service ends again and again (%d times so far); %w", restarts, why)
	case properties["ActiveState"] == "activating":
		return "perch.service is starting", nil
	case properties["NeedDaemonReload"] == "yes":
		return "", errors.New("the unit has changed since systemd read it; sudo systemctl daemon-reload && sudo systemctl restart perch")
	case properties["ActiveState"] == "active" && properties["UnitFileState"] == "disabled":
		return "", errors.New("perch.service runs, but will not start at the next boot; sudo systemctl enable perch")
	case properties["ActiveState"] == "active" && restarts == 1:
		return fmt.Sprintf("perch.service is active; it was restarted once so far, and %v", why), nil
	case properties["ActiveState"] == "active" && restarts > 1:
		return fmt.Sprintf("perch.service is active; it was restarted (%d times so far), and %v", restarts, why), nil
	case properties["ActiveState"] == "active":
		return "perch.service is active", nil
	}
	return fmt.Sprintf("perch.service is %s; sudo systemctl start perch starts it", properties["ActiveState"]), nil
}

// CheckCertificate checks the certificate for TLS, unless the running appliance reports its condition.
func (d *Examination) CheckCertificate() {
	if len(d.Config.TLS.Listen) == 0 || d.reports("tls") {
		return
	}
	pair, err := config.ReadCertificate(d.Config.TLS)
	if err != nil {
		d.addIfReadable("certificate", err, "")
		return
	}
	switch err := config.CheckExpiry(pair.Leaf, time.Now()); {
	case errors.Is(err, config.ErrDates):
		d.add("certificate", err, "")
	case err != nil:
		d.Findings = append(d.Findings, finding{Ok: true, warn: true, Part: "certificate", Note: err.Error()})
	default:
		d.add("certificate", nil, fmt.Sprintf("for %s, until %s", config.Names(pair.Leaf), pair.Leaf.NotAfter.Format(time.DateOnly)))
	}
}

// CheckSecrets adds the warnings of the configuration except those about the certificate, and checks who
// can read the secrets in the data directory.
func (d *Examination) CheckSecrets() {
	warnings := slices.DeleteFunc(d.Config.Warnings(d.File, d.Data, time.Now()), func(w config.Warning) bool { return w.Part == "tls" })
	for _, w := range warnings {
		d.Findings = append(d.Findings, finding{Ok: true, warn: true, Part: w.Part, Note: w.What})
	}
	allSecret := !slices.ContainsFunc(warnings, func(w config.Warning) bool { return w.Part != "language" })
	checked := 0
	for _, name := range append(datadir.Secrets(), filepath.Base(archive.DatabasePath(d.Data))) {
		path := filepath.Join(d.Data, name)
		f, err := os.Stat(path)
		if err != nil {
			continue // the file does not exist yet, or this user may not see it
		}
		checked++
		if f.Mode().Perm()&0o077 != 0 {
			d.add("secrets", fmt.Errorf("other users of this machine can read %s; prevent it: sudo chmod 600 %s", path, path), "")
			allSecret = false
		}
	}
	if allSecret && checked > 0 {
		d.add("secrets", nil, "only their owner can read them")
	}
}
