// Package hassapp integrates Perch with Home Assistant when the Supervisor runs Perch as an app. The
// package asks the Supervisor for the MQTT broker and Home Assistant for its administrators, announces
// the appliance's services to Home Assistant, and restores the backups of the app.
package hassapp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"perch/cmd/perch/config"
	"perch/health"
	"perch/remote/hass"
	"perch/remote/supervisor"
	"perch/store"
	"perch/store/archive"
)

// Intervals between announcements.
const (
	checkEvery = 5 * time.Second // how often the offers are compared with the announcements
	maxRetry   = 2 * time.Minute // maximum delay after failures
)

// App is Perch as an app of Home Assistant: it holds the connections to the Supervisor and to Home
// Assistant.
type App struct {
	client *supervisor.Client
	core   *hass.Client
	ids    *store.Table[string] // announcement IDs; key: "announced-" and the service

	mu        sync.Mutex
	cause     error     // why the last attempt to announce the services failed; nil if it succeeded
	since     time.Time // when cause last changed
	announced []string  // names of the announced services
}

// Open returns the App, or nil if this program was not started by a Supervisor. ids stores the IDs
// of announcements.
func Open(ids *store.Table[string]) (*App, error) {
	o, ok := supervisor.FromEnvironment(os.Environ())
	if !ok {
		return nil, nil
	}
	client, err := supervisor.New(o)
	if err != nil {
		return nil, err
	}
	core, err := hass.New(hass.Options{URL: o.Core(), Token: o.Token})
	if err != nil {
		client.Close()
		return nil, err
	}
	return &App{client: client, core: core, ids: ids, since: time.Now()}, nil
}

// Close ends the connections.
func (a *App) Close() {
	a.client.Close()
	a.core.Close()
}

// Administrators returns the user IDs of Home Assistant's administrators.
func (a *App) Administrators(ctx context.Context) (ids []string, err error) {
	users, err := a.core.Users(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		if u.Administrator() {
			ids = append(ids, u.ID)
		}
	}
	return ids, nil
}

// Broker returns the address and the credentials of Home Assistant's MQTT broker. The address is
// empty if Home Assistant has no broker. If a is nil, Broker returns an error.
func (a *App) Broker(ctx context.Context) (address, user, password string, err error) {
	if a == nil {
		return "", "", "", errors.New("there is no Supervisor")
	}
	b, err := a.client.MQTT(ctx)
	if errors.Is(err, supervisor.ErrNoBroker) {
		return "", "", "", nil
	}
	return b.URL, b.User, b.Password, err
}

// FindBroker returns m with the address and credentials of the broker. If m.Broker is
// config.SupervisorBroker, it requests them from the Supervisor; if Home Assistant has no broker, the result
// is config.EmbeddedBroker. It returns any other m unchanged, and also if no Supervisor has started this
// program.
func FindBroker(ctx context.Context, m config.MQTT) (config.MQTT, error) {
	o, ok := supervisor.FromEnvironment(os.Environ())
	if m.Broker != config.SupervisorBroker || !ok {
		return m, nil
	}
	client, err := supervisor.New(o)
	if err != nil {
		return m, err
	}
	defer client.Close()
	b, err := client.MQTT(ctx)
	switch {
	case errors.Is(err, supervisor.ErrNoBroker):
		m.Broker = config.EmbeddedBroker
	case err != nil:
		return m, err
	default:
		m.Broker, m.User, m.Password, m.PasswordFile = b.URL, b.User, b.Password, ""
	}
	return m, nil
}

// Offers holds the services that this appliance offers to Home Assistant's integrations.
type Offers struct {
	Wyoming string // address of the Wyoming server; empty if it is off
	Broker  string // address of the embedded MQTT broker; empty if it is off
	// User and Password are the broker's credentials.
	User, Password string
	// Settled is true once Broker is final. Until then an empty Broker does not withdraw the
	// announcement of an earlier run.
	Settled bool
}

// services returns the discovery data of each offered service. The keys are the Supervisor's names
// of services.
func (o Offers) services() map[string]map[string]any {
	services := map[string]map[string]any{}
	if o.Wyoming != "" {
		services["wyoming"] = map[string]any{"uri": "tcp://" + reachable(o.Wyoming)}
	}
	if o.Broker != "" {
		host, port, _ := net.SplitHostPort(reachable(o.Broker)) // the address of an open listener is valid
		number, _ := strconv.Atoi(port)
		services["mqtt"] = map[string]any{"host": host, "port": number, "ssl": false, "protocol": "3.1.1", "username": o.User, "password": o.Password}
	}
	return services
}

// appNetwork is the network of Home Assistant's apps.
var appNetwork = netip.MustParsePrefix(supervisor.Gateway + "/23")

// reachable returns the address at which Home Assistant connects to a listener of this program. Home
// Assistant and this program run on the host's network. For a listener on all interfaces, the result is the
// machine's address in the network of apps, or else loopback.
func reachable(address string) string {
	host, port, _ := net.SplitHostPort(address) // the address of an open listener is valid
	if ip, err := netip.ParseAddr(host); err == nil && !ip.IsUnspecified() {
		return address
	}
	host = "127.0.0.1"
	addresses, _ := net.InterfaceAddrs() // after an error, loopback is used
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && appNetwork.Contains(p.Addr()) {
			host = p.Addr().String()
		}
	}
	return net.JoinHostPort(host, port)
}

// Run announces the offers to Home Assistant until ctx ends, and updates the announcements when the
// offers change. It does not withdraw them at the end, because Home Assistant would then remove the
// integrations that the owner has set up with these services.
func (a *App) Run(ctx context.Context, offers func() Offers, log *slog.Logger) {
	announced := map[string]map[string]any{}
	delay, retry := time.Duration(0), checkEvery
	for {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return
		}
		o := offers()
		err := a.announce(ctx, o.services(), announced, o.Settled)
		if ctx.Err() != nil {
			return
		}
		a.record(err, slices.Sorted(maps.Keys(announced)), log)
		if delay = checkEvery; err == nil {
			retry = checkEvery
		} else {
			delay, retry = retry, min(2*retry, maxRetry)
		}
	}
}

// announce announces the offers that announced lacks, adds them to announced, and withdraws services
// that are no longer offered.
func (a *App) announce(ctx context.Context, offers, announced map[string]map[string]any, settled bool) error {
	var failed []error
	for _, service := range []string{"mqtt", "wyoming"} { // the key discovery of the app's config.yaml lists these
		offer, offered := offers[service]
		switch {
		case offered && !maps.Equal(offer, announced[service]):
			id, err := a.client.Announce(ctx, service, offer)
			if err == nil {
				err = a.ids.Put("announced-"+service, id)
			}
			if err == nil {
				announced[service] = offer
			}
			failed = append(failed, err)
		case !offered && (service != "mqtt" || settled):
			delete(announced, service)
			failed = append(failed, a.withdraw(ctx, service))
		}
	}
	return errors.Join(failed...)
}

// withdraw withdraws the announcement of a service, even if an earlier run made it.
func (a *App) withdraw(ctx context.Context, service string) error {
	id, _, err := a.ids.Get("announced-" + service)
	if err != nil || id == "" {
		return err
	}
	if err := a.client.Withdraw(ctx, id); err != nil {
		return err
	}
	return a.ids.Put("announced-"+service, "")
}

// record stores the result of an attempt for Condition, and logs an error that differs from the
// previous one.
func (a *App) record(err error, announced []string, log *slog.Logger) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if fmt.Sprint(err) != fmt.Sprint(a.cause) {
		a.since = time.Now()
		if err != nil {
			log.Warn("Perch cannot announce its services to Home Assistant; it tries again", "err", err)
		}
	}
	a.cause, a.announced = err, announced
}

// Condition returns the condition of the announcements: OK if the last attempt to announce the services
// succeeded.
func (a *App) Condition() health.Part {
	a.mu.Lock()
	defer a.mu.Unlock()
	part := health.Part{Name: "home assistant", OK: a.cause == nil, Since: a.since}
	if a.cause != nil {
		return part.Saying(strings.ReplaceAll(a.cause.Error(), "\n", "; "))
	}
	if len(a.announced) == 0 {
		return part.Saying("runs Perch as its app; no service is announced to it")
	}
	return part.Saying("runs Perch as its app, and knows its services " + strings.Join(a.announced, " and "))
}

// backupFile is the backup in the data directory that the app writes before Home Assistant copies
// the directory. Home Assistant's copy leaves out the database, which is in use. The app's
// config.yaml names this file, too.
const backupFile = "app-backup.tar"

// RestoreBackup restores backupFile if the database is missing, which means that Home Assistant has
// restored the data directory. It does nothing if Perch does not run as an app.
func RestoreBackup(d archive.Directory, log *slog.Logger) error {
	if _, ok := supervisor.FromEnvironment(os.Environ()); !ok {
		return nil
	}
	if _, err := os.Lstat(archive.DatabasePath(d.Path)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	path := filepath.Join(d.Path, backupFile)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the backup that Home Assistant has restored: %w", err)
	}
	defer file.Close()
	m, _, err := d.Restore(context.Background(), file)
	if err != nil {
		return fmt.Errorf("restore the backup that Home Assistant has restored, %s: %w; remove that file to begin without it", path, err)
	}
	log.Info("the backup that Home Assistant has restored is in use", "made", m.Created)
	return os.Remove(path)
}
