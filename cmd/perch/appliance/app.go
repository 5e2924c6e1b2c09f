package appliance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"perch/gateway/admin"
	"perch/remote/hass"
	hassio "perch/remote/supervisor" // another supervisor is of this package
	"perch/store/archive"
)

// homeAssistant is Home Assistant, where this appliance is its app: the Supervisor says which MQTT
// broker there is, and tells Home Assistant what this appliance offers.
type homeAssistant struct {
	client *hassio.Client
	core   *hass.Client // Home Assistant itself, behind the Supervisor
	kept   names        // of announcements, by service

	mu    sync.Mutex
	cause error // why Home Assistant does not know what it should
	since time.Time
	told  []string
}

// names outlive a run.
type names interface {
	Get(key string) (text string, found bool, err error)
	Put(key, text string) error
}

// Times of announcements.
const (
	offersEvery = 5 * time.Second // a look at what is offered
	toldAgainIn = 2 * time.Minute // after a failure, at the most
)

// openHomeAssistant makes the connection to the Supervisor, where one has started this program.
func (a *Appliance) openHomeAssistant() error {
	o, is := hassio.FromEnvironment(os.Environ())
	if !is {
		return nil
	}
	client, err := hassio.New(o)
	if err != nil {
		return err
	}
	core, err := hass.New(hass.Options{URL: o.Core(), Token: o.Token})
	if err != nil {
		client.Close()
		return err
	}
	a.homeAssistant = &homeAssistant{client: client, core: core, kept: a.identity, since: a.Started}
	return nil
}

// administrators lists the ids of Home Assistant's administrators.
func (h *homeAssistant) administrators(ctx context.Context) (ids []string, err error) {
	all, err := h.core.Users(ctx)
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

// broker is Home Assistant's MQTT broker, and an empty address where it has none.
func (h *homeAssistant) broker(ctx context.Context) (address, user, password string, err error) {
	if h == nil {
		return "", "", "", errors.New("there is no Supervisor")
	}
	b, err := h.client.MQTT(ctx)
	if errors.Is(err, hassio.ErrNoBroker) {
		return "", "", "", nil
	}
	return b.URL, b.User, b.Password, err
}

// FindBroker is a configuration with the broker in it that the Supervisor knows, where that
// is to be asked.
func FindBroker(ctx context.Context, m config.MQTT) (config.MQTT, error) {
	o, is := hassio.FromEnvironment(os.Environ())
	if m.Broker != config.SupervisorBroker || !is {
		return m, nil
	}
	client, err := hassio.New(o)
	if err != nil {
		return m, err
	}
	defer client.Close()
	b, err := client.MQTT(ctx)
	switch {
	case errors.Is(err, hassio.ErrNoBroker):
		m.Broker = config.EmbeddedBroker
	case err != nil:
		return m, err
	default:
		m.Broker, m.User, m.Password, m.PasswordFile = b.URL, b.User, b.Password, ""
	}
	return m, nil
}

// offers are what this appliance has for Home Assistant, by service, as its integrations
// want it.
func (a *Appliance) offers() map[string]map[string]any {
	all := map[string]map[string]any{}
	if a.wyoming != nil {
		all["wyoming"] = map[string]any{"uri": "tcp://" + amongApps(a.At.String())}
	}
	// Another program may have the port.
	if s := a.Mirror.Status(); s.Connected && s.Broker == config.EmbeddedBroker {
		host, port, _ := net.SplitHostPort(amongApps(a.Config().MQTT.Listen)) // as it was opened
		number, _ := strconv.Atoi(port)                                       // digits, by the check
		user, password := a.Mirror.Account()
		all["mqtt"] = map[string]any{"host": host, "port": number, "ssl": false, "protocol": "3.1.1", "username": user, "password": password}
	}
	return all
}

// appNetwork is the network of Home Assistant's apps.
var appNetwork = netip.MustParsePrefix(hassio.Gateway + "/23")

// amongApps is where Home Assistant finds an address that is listened on: at this machine's
// own in the network of apps, where it has one, for Home Assistant itself is on the host's
// network and so are we.
func amongApps(address string) string {
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

// tellHomeAssistant keeps Home Assistant informed of what is offered until ctx ends. Announcements
// stay when the appliance stops: for one that is taken back Home Assistant removes what
// its owner has set up with it.
func (a *Appliance) tellHomeAssistant(ctx context.Context) {
	told := map[string]map[string]any{}
	wait := offersEvery
	for first := true; ; first = false {
		after := offersEvery
		if first {
			after = 0
		}
		if a.homeAssistant.failing() != nil {
			after, wait = wait, min(2*wait, toldAgainIn)
		} else {
			wait = offersEvery
		}
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return
		}
		settled := a.Mirror.Status().Connected || a.Config().MQTT.Broker == "none"
		err := a.homeAssistant.tell(ctx, a.offers(), told, settled)
		if ctx.Err() == nil {
			a.homeAssistant.note(err, slices.Sorted(maps.Keys(told)), a.Log.Warn)
		}
	}
}

// tell announces what is offered and was not told, and takes back what is offered no more.
// Whether this appliance is the broker is not known before MQTT is settled.
func (h *homeAssistant) tell(ctx context.Context, offers, told map[string]map[string]any, settled bool) error {
	var failed []error
	for _, service := range []string{"mqtt", "wyoming"} { // as the app's config.yaml lists them in discovery
		offer, is := offers[service]
		switch {
		case is && !maps.Equal(offer, told[service]):
			id, err := h.client.Announce(ctx, service, offer)
			if err == nil {
				err = h.kept.Put("announced-"+service, id)
			}
			if err == nil {
				told[service] = offer
			}
			failed = append(failed, err)
		case !is && (service != "mqtt" || settled):
			delete(told, service)
			failed = append(failed, h.takeBack(ctx, service))
		}
	}
	return errors.Join(failed...)
}

// takeBack takes an announcement back, which may be from an earlier run.
func (h *homeAssistant) takeBack(ctx context.Context, service string) error {
	id, _, err := h.kept.Get("announced-" + service)
	if err != nil || id == "" {
		return err
	}
	if err := h.client.Withdraw(ctx, id); err != nil {
		return err
	}
	return h.kept.Put("announced-"+service, "")
}

func (h *homeAssistant) failing() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cause
}

// note keeps what has come of an attempt, and logs a change.
func (h *homeAssistant) note(err error, told []string, warn func(string, ...any)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errorText(err) != errorText(h.cause) {
		h.since = time.Now()
		if err != nil {
			warn("Home Assistant is not told of everything that Perch offers; it is tried again", "err", err)
		}
	}
	h.cause, h.told = err, told
}

// condition is whether Home Assistant knows what is offered.
func (h *homeAssistant) condition() admin.Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	part := admin.Part{Name: "home assistant", OK: h.cause == nil, Since: h.since}
	switch {
	case h.cause != nil:
		part.Note = strings.ReplaceAll(h.cause.Error(), "\n", "; ")
		return part
	case len(h.told) > 1:
		last := len(h.told) - 1
		return part.Saying(fmt.Sprintf("runs this as its app, and was told of %s and %s", strings.Join(h.told[:last], ", "), h.told[last]))
	case len(h.told) > 0:
		return part.Saying(fmt.Sprintf("runs this as its app, and was told of %s", h.told[0]))
	}
	return part.Saying("runs this as its app; nothing is announced to it")
}

// appBackup is the file in the data directory into which an app of Home Assistant writes a
// backup before Home Assistant copies that directory, without the database that is in use.
// The app's config.yaml names it.
const appBackup = "app-backup.tar"

// restoreApp puts such a backup in the place of a database that is not there: Home
// Assistant has put the data directory back.
func (a *Appliance) restoreApp() error {
	if _, is := hassio.FromEnvironment(os.Environ()); !is {
		return nil
	}
	if _, err := os.Lstat(archive.DatabasePath(a.Data)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	path := filepath.Join(a.Data, appBackup)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the backup that Home Assistant has restored: %w", err)
	}
	defer file.Close()
	m, _, err := Directory(a.Data, a.Version, a.Log).Restore(context.Background(), file)
	if err != nil {
		return fmt.Errorf("restore what Home Assistant has put back, %s: %w; remove that file to begin without it", path, err)
	}
	a.Log.Info("the backup that Home Assistant has put back was restored", "made", m.Created)
	return os.Remove(path)
}

// homeAssistantPart is Home Assistant, where this is its app.
func (a *Appliance) homeAssistantPart() part {
	if a.homeAssistant == nil {
		return part{}
	}
	return part{run: until(a.tellHomeAssistant), condition: only(a.homeAssistant.condition)}
}
