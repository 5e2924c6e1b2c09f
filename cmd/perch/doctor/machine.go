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

// Configuration checks the sentences of the configuration. It has no other faults, with which
// Misconfigured is called instead of Examine.
func (d *Examination) Configuration() {
	if err := engines.CheckRecognizers(d.Config); err != nil {
		d.add("configuration", fmt.Errorf("%w; perch check-config says where", err), "")
		return
	}
	d.add("configuration", nil, cmp.Or(d.File, "no file: the defaults"))
}

// Disk checks the rights of the data directory and the room in it.
func (d *Examination) Disk() {
	dir := store.Nearest(d.Data)
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o002 != 0 && dir == filepath.Clean(d.Data) {
		d.add("data", fmt.Errorf("anybody on this machine can change %s; chmod o-rwx %s", dir, dir), "")
	} else if d.status != nil || d.locked {
		d.add("data", nil, fmt.Sprintf("%s is the appliance's, which runs", d.Data))
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

// Files checks the owner's gestures, words, characters and skills. A start of the appliance leaves
// out files that it cannot use.
func (d *Examination) Files() {
	faults, some := checkOwnersFiles(d.Config, d.Data)
	for _, err := range faults {
		d.addRead("files", err, "")
	}
	if some && len(faults) == 0 {
		d.add("files", nil, "your own gestures, words, characters and skills can be used")
	}
}

// Clock checks the time, which robots get from this machine. It is wrong on a Pi without a clock
// and without a network.
func (d *Examination) Clock() {
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

// Database checks whether a start would open the database. A running appliance reports that itself.
func (d *Examination) Database() {
	if d.status != nil || d.locked {
		return
	}
	path, left := archive.DatabasePath(d.Data), datadir.Traces(d.Data)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(left) == 0:
		d.add("database", nil, "not there yet; the first start makes it")
		return
	case errors.Is(err, fs.ErrNotExist):
		d.add("database", datadir.ExplainMissing(d.Data, left, store.Missing(path)), "")
		return
	case err != nil:
		d.addRead("database", err, "")
		return
	case info.Mode().Perm()&0o077 != 0:
		d.add("database", fmt.Errorf("%s can be read by others (mode %#o), and holds what was said; chmod 600 %s", path, info.Mode().Perm(), path),
			"")
		return
	case info.Size() > mostCopied:
		d.add("database", nil, fmt.Sprintf("%d MB, which is too much to be looked at here", info.Size()>>20))
		return
	}
	d.store, err = copyDatabase(path, len(left) > 0)
	if err == nil && d.store.Salvaged() != nil {
		err = d.store.damage(path)
	}
	d.addRead("database", datadir.ExplainMissing(d.Data, left, err), fmt.Sprintf("%s, %d KB, can be read", path, info.Size()>>10))
}

// unit checks the service's unit, if systemd runs this machine and has one.
func (d *Examination) unit(ctx context.Context) {
	exists := func(path string) bool { return store.Exists(filepath.Join(d.root, path)) }
	own, packaged := exists(config.OwnUnit), exists("usr/"+config.PackageUnit) || exists(config.PackageUnit)
	if !own && !packaged || !exists("run/systemd/system") {
		return
	}
	if to, err := os.Readlink(filepath.Join(d.root, config.OwnUnit)); own && err == nil && to == "/dev/null" {
		d.add("unit", errors.New("perch.service is masked and cannot start; systemctl unmask perch"), "")
		return
	}
	if own && packaged {
		d.add("unit",
			fmt.Errorf(
				"/%s takes the place of the package's unit, which is newer after each update; move it away and run systemctl daemon-reload, or keep only what differs with systemctl edit perch", config.OwnUnit), "")
		return
	}
	text, err := d.services(ctx)
	if err != nil {
		d.add("unit", fmt.Errorf("systemd cannot be asked about perch.service: %w; see systemctl status perch", err), "")
		return
	}
	fine, err := ReadUnit(text)
	d.add("unit", err, fine)
}

// misconfiguredStatus is the exit code of perch serve for a configuration with faults.
const misconfiguredStatus = "2"

// ReadUnit returns the condition of a unit by its properties, as AskSystemd returns them.
func ReadUnit(text string) (fine string, err error) {
	is := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		is[name] = value
	}
	restarts, _ := strconv.Atoi(is["NRestarts"]) // an older systemd has no such property
	why := errors.New("journalctl -u perch -n 50 says why")
	if is["ExecMainStatus"] == misconfiguredStatus {
		why = errors.New("its configuration has faults: sudo perch check-config names them")
	}
	ends := is["SubState"] == "auto-restart" || is["ActiveState"] == "activating" && restarts > 0
	switch {
	case is["ActiveState"] == "failed":
		return "", fmt.Errorf("perch.service has failed (%s); %w", is["Result"], why)
	case ends && restarts == 0:
		return "", fmt.Errorf("perch.service ends again and again; %w", why)
	case ends && restarts == 1:
		return "", fmt.Errorf("perch.service ends again and again (once so far); %w", why)
	case ends:
		return "", fmt.Errorf("perch.service ends again and again (%d times so far); %w", restarts, why)
	case is["ActiveState"] == "activating":
		return "perch.service is starting", nil
	case is["NeedDaemonReload"] == "yes":
		return "", errors.New("the unit has changed since systemd read it; systemctl daemon-reload && systemctl restart perch")
	case is["ActiveState"] == "active" && is["UnitFileState"] == "disabled":
		return "", errors.New("perch.service runs, and would not after the next boot; systemctl enable perch")
	case is["ActiveState"] == "active" && restarts == 1:
		return fmt.Sprintf("perch.service is active; it was restarted once so far, and %v", why), nil
	case is["ActiveState"] == "active" && restarts > 1:
		return fmt.Sprintf("perch.service is active; it was restarted (%d times so far), and %v", restarts, why), nil
	case is["ActiveState"] == "active":
		return "perch.service is active", nil
	}
	return fmt.Sprintf("perch.service is %s; systemctl start perch starts it", is["ActiveState"]), nil
}

// Encryption checks the certificate.
func (d *Examination) Encryption() {
	if len(d.Config.TLS.Listen) == 0 || d.reports("tls") {
		return
	}
	pair, err := config.ReadCertificate(d.Config.TLS)
	if err != nil {
		d.addRead("certificate", err, "")
		return
	}
	switch err := config.Expiry(pair.Leaf, time.Now()); {
	case errors.Is(err, config.ErrDates):
		d.add("certificate", err, "")
	case err != nil:
		d.Findings = append(d.Findings, finding{Ok: true, warn: true, Part: "certificate", Note: err.Error()})
	default:
		d.add("certificate", nil, fmt.Sprintf("for %s, until %s", config.Names(pair.Leaf), pair.Leaf.NotAfter.Format(time.DateOnly)))
	}
}

// Secrets adds the warnings of the configuration, and checks who can read the secrets.
func (d *Examination) Secrets() {
	found := slices.DeleteFunc(d.Config.Warnings(d.File, d.Data, time.Now()), func(w config.Warning) bool { return w.Part == "tls" })
	for _, w := range found {
		d.Findings = append(d.Findings, finding{Ok: true, warn: true, Part: w.Part, Note: w.What})
	}
	found = slices.DeleteFunc(found, func(w config.Warning) bool { return w.Part == "language" })
	checked := 0
	for _, name := range []string{"admin-token", "token-key", datadir.MQTTPasswordFile, filepath.Base(archive.DatabasePath(d.Data))} {
		path := filepath.Join(d.Data, name)
		f, err := os.Stat(path)
		if err != nil {
			continue // it does not exist yet, or this user may not see it
		}
		checked++
		if f.Mode().Perm()&0o077 != 0 {
			d.add("secrets", fmt.Errorf("others on this machine can read %s; take that from them: chmod 600 %s", path, path), "")
			found = append(found, config.Warning{})
		}
	}
	if len(found) == 0 && checked > 0 {
		d.add("secrets", nil, "nobody but their owner can read them")
	}
}
