package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perch/child"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/gateway/mdns"
	"perch/gateway/owner/admin"
	"perch/store"
)

// Examination collects findings.
type Examination struct {
	Options
	Data  string // the directory
	named string // the directory as it was named; empty for the service's or the default
	report
	running  Asker         // the running appliance, or nil
	status   *admin.Status // of that appliance, or nil
	reported []finding     // its engines' conditions; the engines are tried as well
	locked   bool          // an appliance seems to run, and may not be asked
	store    *databaseCopy // of an appliance that does not run; nil if none can be read

	surroundings
}

// surroundings is the machine that is examined. Tests replace it.
type surroundings struct {
	service   *config.Account // the user that the service runs as, if that is another
	root      string          // of the machine's files, "/"
	now       func() time.Time
	resolve   func(ctx context.Context, host string) (netip.Addr, error)
	addresses func() ([]net.Addr, error)
	free      func(dir string) (int64, error)
	services  func(ctx context.Context) (string, error) // the properties of the service's unit
}

// Asker is a connection to a running appliance.
type Asker interface {
	// Get decodes the answer to a GET of a path of the admin API.
	Get(ctx context.Context, path string, into any) error
}

// ErrNoneRuns is wrapped by errors that this machine has no socket of an appliance.
var ErrNoneRuns = errors.New("no appliance runs here")

// Options says what is examined.
type Options struct {
	Config  *config.Config
	File    string // of the configuration; may be empty
	Data    string // the directory as it was named; may be empty
	Version string // of this program
	Built   time.Time
	// Connect reaches the appliance that runs on a data directory; an empty name stands for the
	// service's. If none runs, it returns ErrNoneRuns.
	Connect func(data string) (Asker, error)
}

// New returns an examination of the data directory that is named, or else of the service's, which
// only its owner may be able to read.
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

// AskSystemd returns the properties of the service's unit, a line each.
func AskSystemd(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	systemctl := exec.CommandContext(ctx, "systemctl", "show", "perch.service", "--no-pager",
		"--property=LoadState,ActiveState,SubState,Result,NRestarts,ExecMainStatus,NeedDaemonReload,UnitFileState")
	systemctl.Env = child.Environ(os.Environ())
	out, err := systemctl.Output()
	return string(out), err
}

// Close removes what was copied.
func (d *Examination) Close() {
	if d.store != nil {
		_ = d.store.Close() // nothing was written
		_ = os.RemoveAll(d.store.dir)
	}
}

// reports says whether the running appliance reports a part.
func (d *Examination) reports(part string) bool {
	return d.status != nil && slices.ContainsFunc(d.status.Parts, func(p admin.Part) bool { return p.Name == part })
}

// reportsFault says whether it reports that a part does not work.
func (d *Examination) reportsFault(part string) bool {
	return d.status != nil && slices.ContainsFunc(d.status.Parts, func(p admin.Part) bool { return p.Name == part && !p.OK })
}

// ShowSecrets prints the generated passwords.
func (d *Examination) ShowSecrets(out io.Writer) {
	c, data := d.Config, d.Data
	fmt.Fprint(out, "\nSecrets:\n")
	names := []string{"admin-token"}
	if c.MQTT.Generated() {
		names = append(names, datadir.MQTTPasswordFile)
		fmt.Fprintf(out, "      mqtt-user: %s\n", cmp.Or(c.MQTT.User, config.MQTTUser))
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(data, name))
		if err != nil {
			fmt.Fprintf(out, "      %s cannot be read: %v\n", name, err)
			continue
		}
		fmt.Fprintf(out, "      %s: %s\n", name, strings.TrimSpace(string(text)))
	}
}
