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

// Examination examines an installation and collects findings.
type Examination struct {
	Options
	Data  string // path of the data directory
	named string // Options.Data, or "" for the service's data directory
	report
	running  APIClient     // client of the running appliance; nil if none runs or answers
	status   *admin.Status // status of the running appliance; nil if none runs or answers
	reported []finding     // conditions of engines that the running appliance reports
	locked   bool          // whether an appliance seems to run, but this user may not connect to it
	store    *databaseCopy // database of an appliance that does not run; nil if it cannot be read

	system
}

// system gives access to the machine that is examined. Tests replace it.
type system struct {
	service   *config.Account // the service's user; nil if the service is not installed, or this process runs as that user
	root      string          // the folder above etc, usr and run
	now       func() time.Time
	resolve   func(ctx context.Context, host string) (netip.Addr, error)
	addresses func() ([]net.Addr, error)
	free      func(dir string) (int64, error)           // returns the free space in bytes
	services  func(ctx context.Context) (string, error) // returns the properties of the service's unit
}

// APIClient is a client of a running appliance.
type APIClient interface {
	// Get sends a GET request for a path of the admin API, and decodes the response into the value
	// that into points to.
	Get(ctx context.Context, path string, into any) error
}

// ErrNotRunning is wrapped by the error of Options.Connect if no appliance has a socket for the data directory.
var ErrNotRunning = errors.New("no appliance runs here")

// Options configures an Examination.
type Options struct {
	Config  *config.Config
	File    string              // path of the configuration file; may be empty
	Data    string              // path of the data directory; empty for the service's data directory
	Version string              // version of this program
	Built   time.Time           // when this program was built
	Speech  *config.PerchSpeech // perch-speech on this machine; may be nil
	// Connect returns a client of the appliance that uses a data directory; "" means the service's
	// data directory. If no appliance has a socket there, the error of Connect wraps ErrNotRunning.
	Connect func(data string) (APIClient, error)
}

// New returns an examination of the data directory Options.Data. If Options.Data is empty, it examines the
// service's data directory, even if only the service's user can read this directory. If that directory does not
// exist, it examines the one that config.Data returns.
func New(o Options) *Examination {
	data, named := config.Data(o.Data), o.Data
	if _, err := os.Stat(config.SystemData); named == "" && err == nil && os.Getenv("STATE_DIRECTORY") == "" {
		data = config.SystemData
	}
	if filepath.Clean(named) == config.SystemData {
		named = ""
	}
	return &Examination{Options: o, Data: data, named: named, system: system{
		service: config.ServiceAccount(), root: "/", now: time.Now,
		resolve: mdns.Resolve, addresses: net.InterfaceAddrs, free: store.FreeSpace, services: UnitProperties,
	}}
}

// UnitProperties returns the properties of the service's unit as systemctl prints them: one on each
// line, such as "ActiveState=active".
func UnitProperties(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	systemctl := exec.CommandContext(ctx, "systemctl", "show", "perch.service", "--no-pager",
		"--property=LoadState,ActiveState,SubState,Result,NRestarts,ExecMainStatus,NeedDaemonReload,UnitFileState")
	systemctl.Env = child.Environ(os.Environ())
	out, err := systemctl.Output()
	return string(out), err
}

// Close removes the copy of the database.
func (d *Examination) Close() {
	if d.store != nil {
		_ = d.store.Close() // an error loses nothing: the copy is removed
		_ = os.RemoveAll(d.store.dir)
	}
}

// reports returns true if the running appliance reports the condition of a part.
func (d *Examination) reports(part string) bool {
	return d.status != nil && slices.ContainsFunc(d.status.Parts, func(p admin.Part) bool { return p.Name == part })
}

// reportsFault returns true if the running appliance reports that a part does not work.
func (d *Examination) reportsFault(part string) bool {
	return d.status != nil && slices.ContainsFunc(d.status.Parts, func(p admin.Part) bool { return p.Name == part && !p.OK })
}

// ShowSecrets prints the admin token, and the user and generated password of the embedded broker.
func (d *Examination) ShowSecrets(out io.Writer) {
	c, data := d.Config, d.Data
	fmt.Fprint(out, "\nSecrets:\n")
	names := []string{"admin-token"}
	if c.MQTT.GeneratesPassword() {
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
