// Package hassapp is what Perch does as an app of Home Assistant, where the Supervisor has
// started it: it learns from the Supervisor which MQTT broker there is and who administrates,
// tells Home Assistant what this appliance offers, and restores the backups of the app.
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

// Times of announcements.
const (
	checkEvery = 5 * time.Second // of what is offered
	maxRetry   = 2 * time.Minute // after failures
)

// App is the connection to the Supervisor, and to Home Assistant behind it.
type App struct {
	client *supervisor.Client
	core   *hass.Client
	ids    *store.Table[string] // of announcements, by "announced-" and the service

	mu        sync.Mutex
	cause     error // why Home Assistant does not know all that is offered
	since     time.Time
	announced []string // services
}

// Open returns the connection, or nil where no Supervisor has started this program.
func Open(ids *store.Table[string]) (*App, error) {
	o, is := supervisor.FromEnvironment(os.Environ())
	if !is {
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

// Administrators returns the ids of Home Assistant's administrators.
func (a *App) Administrators(ctx context.Context) (ids []string, err error) {
	all, err := a.core.Users(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		if u.Administrator() {
			ids = append(ids, u.ID)
		}
	}
	return ids, nil
}

// Broker returns Home Assistant's MQTT broker, and an empty address where it has none. A nil
// App returns an error.
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

// FindBroker returns the settings of MQTT with the Supervisor's broker filled in, where they
// leave the broker to the Supervisor.
func FindBroker(ctx context.Context, m config.MQTT) (config.MQTT, error) {
	o, is := supervisor.FromEnvironment(os.Environ())
	if m.Broker != config.SupervisorBroker || !is {
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

// Offers are what this appliance has for Home Assistant's integrations.
type Offers struct {
	Wyoming string // the address of the Wyoming server; empty if it is off
	Broker  string // the address of the embedded MQTT broker; empty if it is off
	// User and Password are the broker's.
	User, Password string
	// Settled is whether it is known that there is a broker, or none: before that an
	// announcement of an earlier run stays.
	Settled bool
}

// services returns the offers as the integrations want them, by service.
func (o Offers) services() map[string]map[string]any {
	all := map[string]map[string]any{}
	if o.Wyoming != "" {
		all["wyoming"] = map[string]any{"uri": "tcp://" + reachable(o.Wyoming)}
	}
	if o.Broker != "" {
		host, port, _ := net.SplitHostPort(reachable(o.Broker)) // as it was opened
		number, _ := strconv.Atoi(port)                         // digits, by the check
		all["mqtt"] = map[string]any{"host": host, "port": number, "ssl": false, "protocol": "3.1.1", "username": o.User, "password": o.Password}
	}
	return all
}

// appNetwork is the network of Home Assistant's apps.
var appNetwork = netip.MustParsePrefix(supervisor.Gateway + "/23")

// reachable returns where Home Assistant finds an address that is listened on: Home Assistant
// is on the host's network, as this program is, and reaches it in the network of apps, where
// the machine has an address.
func reachable(address string) string {
	host, port, _ := net.SplitHostPort(address) // as it was opened
	if ip, err := netip.ParseAddr(host); err == nil && !ip.IsUnspecified() {
		return address
	}
	host = "127.0.0.1"
	all, _ := net.InterfaceAddrs() // without them it is the machine itself
	for _, one := range all {
		if p, err := netip.ParsePrefix(one.String()); err == nil && appNetwork.Contains(p.Addr()) {
			host = p.Addr().String()
		}
	}
	return net.JoinHostPort(host, port)
}

// Run keeps Home Assistant informed of what is offered until ctx ends. Announcements stay when
// the appliance stops: when one is withdrawn, Home Assistant removes what its owner has set up
// with it.
func (a *App) Run(ctx context.Context, offers func() Offers, log *slog.Logger) {
	announced := map[string]map[string]any{}
	after, retry := time.Duration(0), checkEvery
	for {
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return
		}
		o := offers()
		err := a.announce(ctx, o.services(), announced, o.Settled)
		if ctx.Err() != nil {
			return
		}
		a.record(err, slices.Sorted(maps.Keys(announced)), log)
		if after = checkEvery; err == nil {
			retry = checkEvery
		} else {
			after, retry = retry, min(2*retry, maxRetry)
		}
	}
}

// announce announces what is offered and not in announced, and withdraws what is not offered
// any more.
func (a *App) announce(ctx context.Context, offers, announced map[string]map[string]any, settled bool) error {
	var failed []error
	for _, service := range []string{"mqtt", "wyoming"} { // as the app's config.yaml lists them in discovery
		offer, is := offers[service]
		switch {
		case is && !maps.Equal(offer, announced[service]):
			id, err := a.client.Announce(ctx, service, offer)
			if err == nil {
				err = a.ids.Put("announced-"+service, id)
			}
			if err == nil {
				announced[service] = offer
			}
			failed = append(failed, err)
		case !is && (service != "mqtt" || settled):
			delete(announced, service)
			failed = append(failed, a.withdraw(ctx, service))
		}
	}
	return errors.Join(failed...)
}

// withdraw takes an announcement back, which may be from an earlier run.
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

// record stores the result of an attempt, and logs a new failure.
func (a *App) record(err error, announced []string, log *slog.Logger) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if fmt.Sprint(err) != fmt.Sprint(a.cause) {
		a.since = time.Now()
		if err != nil {
			log.Warn("Home Assistant is not told of everything that Perch offers; it is tried again", "err", err)
		}
	}
	a.cause, a.announced = err, announced
}

// Condition returns whether Home Assistant knows what is offered.
func (a *App) Condition() health.Part {
	a.mu.Lock()
	defer a.mu.Unlock()
	part := health.Part{Name: "home assistant", OK: a.cause == nil, Since: a.since}
	if a.cause != nil {
		return part.Saying(strings.ReplaceAll(a.cause.Error(), "\n", "; "))
	}
	if len(a.announced) == 0 {
		return part.Saying("runs this as its app; nothing is announced to it")
	}
	return part.Saying("runs this as its app, and was told of " + strings.Join(a.announced, " and "))
}

// backupFile is the file in the data directory into which the app writes a backup before Home
// Assistant copies that directory, without the database that is in use. The app's config.yaml
// names it.
const backupFile = "app-backup.tar"

// RestoreBackup restores such a backup if the database is missing: Home Assistant has then put
// the data directory back. Outside of an app it does nothing.
func RestoreBackup(d archive.Directory, log *slog.Logger) error {
	if _, is := supervisor.FromEnvironment(os.Environ()); !is {
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
		return fmt.Errorf("restore what Home Assistant has put back, %s: %w; remove that file to begin without it", path, err)
	}
	log.Info("the backup that Home Assistant has put back was restored", "made", m.Created)
	return os.Remove(path)
}
