// Package doctor examines an installation: what works, and for what does not,
// cause and cure.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
	"perch/cmd/perch/listener"
	"perch/gateway/admin"
	"perch/gateway/mdns"
	"perch/store"
)

// Examination collects findings.
type Examination struct {
	Options
	Data     string // the directory
	named    string // the data as it was named; empty is the service's, or what is here
	Findings []finding
	running  Asker         // to the appliance that runs here, if one does
	status   *admin.Status // of that
	reported []finding     // what it says of its engines, which are tried as well
	locked   bool          // one seems to run, and we may not ask it
	store    *databaseCopy // of one that does not run; nil where there is none to be read

	surroundings
}

// surroundings are what is looked at outside of the program; a test has its own.
type surroundings struct {
	service   *config.Account // whom the service runs as, where that is somebody else
	root      string          // of the machine's files, "/"
	now       func() time.Time
	resolve   func(ctx context.Context, host string) (netip.Addr, error)
	addresses func() ([]net.Addr, error)
	free      func(dir string) (int64, error)
	services  func(ctx context.Context) (string, error) // what systemd says of the unit
}

// Asker is a connection to a running appliance.
type Asker interface {
	// Get decodes what lies at a path of the admin API.
	Get(ctx context.Context, path string, into any) error
}

// ErrNoneRuns is wrapped where this machine has no socket of an appliance.
var ErrNoneRuns = errors.New("no appliance runs here")

// Options are what is examined.
type Options struct {
	Config  *config.Config
	File    string // of the configuration; empty where there is none
	Data    string // the directory as it was named; empty where it was not
	Version string // of this program
	Built   time.Time
	// connect reaches the appliance that runs on a data directory; an empty name
	// is that of the service. Where none runs, it returns ErrNoneRuns.
	Connect func(data string) (Asker, error)
}

// New looks at the data that is named, else at the service's, which
// its owner alone may be able to read.
func New(o Options) *Examination {
	data, named := config.Data(o.Data), o.Data
	if _, err := os.Stat(config.SystemData); named == "" && err == nil && os.Getenv("STATE_DIRECTORY") == "" {
		data = config.SystemData
	}
	if filepath.Clean(named) == config.SystemData {
		named = ""
	}
	return &Examination{Options: o, Data: data, named: named, surroundings: surroundings{
		service: config.ServiceAccount(), root: "/", now: time.Now,
		resolve: mdns.Resolve, addresses: net.InterfaceAddrs, free: store.FreeSpace, services: AskSystemd,
	}}
}

// Close removes what was copied.
func (d *Examination) Close() {
	if d.store != nil {
		_ = d.store.Close() // nothing was written
		_ = os.RemoveAll(d.store.dir)
	}
}

// add adds an error, or the note of a part that works.
func (d *Examination) add(part string, err error, fine string) {
	if err != nil {
		d.Findings = append(d.Findings, finding{Part: part, Note: err.Error()})
		return
	}
	d.Findings = append(d.Findings, finding{Ok: true, Part: part, Note: fine})
}

// Misconfigured finds what can be found where the configuration has faults.
func (d *Examination) Misconfigured(ctx context.Context, wrong config.Faults) {
	for _, fault := range wrong {
		d.Findings = append(d.Findings, finding{Part: "configuration", Note: fault.String()})
	}
	d.unit(ctx)
}

// Examine looks at everything.
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

// Appliance asks the one that runs on this machine's data.
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

// reports tells whether the running appliance shows a part.
func (d *Examination) reports(part string) bool {
	return d.status != nil && slices.ContainsFunc(d.status.Parts, func(p admin.Part) bool { return p.Name == part })
}

// reportsFault tells whether it shows that a part does not work.
func (d *Examination) reportsFault(part string) bool {
	return d.status != nil && slices.ContainsFunc(d.status.Parts, func(p admin.Part) bool { return p.Name == part && !p.OK })
}

// addRead adds what was read. That this user may not read it is no fault.
func (d *Examination) addRead(part string, err error, fine string) {
	if errors.Is(err, fs.ErrPermission) {
		err, fine = nil, "not looked at: this user may not read it; sudo perch doctor does"
	}
	d.add(part, err, fine)
}

// Configuration has no faults that keep the appliance from starting, or the
// doctor would not have come so far.
func (d *Examination) Configuration() {
	if err := appliance.CheckRecognizers(d.Config); err != nil {
		d.add("configuration", fmt.Errorf("%w; perch check-config says where", err), "")
		return
	}
	if d.File == "" {
		d.add("configuration", nil, "no file: the defaults")
		return
	}
	d.add("configuration", nil, d.File)
}

// Ports looks whether the configured addresses are free, or the appliance's.
func (d *Examination) Ports() {
	c := d.Config
	d.ports("listen", c.Listen...)
	d.ports("local", c.Local...)
	d.ports("tls.listen", c.TLS.Listen...)
	if c.Robots.MQTT.Listen != "" && d.status == nil { // one that runs says itself what is wrong
		d.ports("robots.mqtt.listen", c.Robots.MQTT.Listen)
	}
	if c.Wyoming.Listen != "" {
		d.ports("wyoming.listen", c.Wyoming.Listen)
	}
	if c.Skins.OpenClaw != "" {
		d.ports("skins.openclaw", c.Skins.OpenClaw)
	}
	// Of an appliance that does not run, the broker itself is tried; a fault of its own says more.
	if c.MQTT.Broker == config.EmbeddedBroker && d.status != nil && !d.reportsFault("mqtt") {
		d.ports("mqtt.listen", c.MQTT.Listen)
	}
}

func (d *Examination) ports(key string, addresses ...string) {
	for _, a := range addresses {
		l, err := net.Listen("tcp", a)
		switch {
		case err == nil && d.status != nil:
			d.add("port "+a, errors.Join(fmt.Errorf("the running appliance does not serve it; restart it to use this configuration (%s)", key),
				l.Close()), "")
		case err == nil:
			d.add("port "+a, l.Close(), "free")
		case d.status != nil && errors.Is(err, syscall.EADDRINUSE):
			d.add("port "+a, nil, "served by the appliance")
		case d.locked && errors.Is(err, syscall.EADDRINUSE):
			d.add("port "+a, nil, "in use, by the appliance as it seems")
		default:
			d.add("port "+a, listener.Error(a, key, err), "")
		}
	}
}
