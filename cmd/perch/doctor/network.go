package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"perch/cmd/perch/config"
	"perch/cmd/perch/hassapp"
	"perch/cmd/perch/listener"
	"perch/cmd/perch/network"
	"perch/device"
	"perch/gateway/homeassistant"
	"perch/gateway/mdns"
	"perch/gateway/owner/admin"
	"perch/plain"
	"perch/store"
)

// checkPorts checks that the configured addresses are free, or that the appliance listens on them.
func (d *Examination) checkPorts() {
	c := d.Config
	d.checkAddresses("listen", c.Listen...)
	d.checkAddresses("local", c.Local...)
	d.checkAddresses("tls.listen", c.TLS.Listen...)
	if c.Robots.MQTT.Listen != "" && d.status == nil { // a running appliance reports this address itself
		d.checkAddresses("robots.mqtt.listen", c.Robots.MQTT.Listen)
	}
	if c.Wyoming.Listen != "" {
		d.checkAddresses("wyoming.listen", c.Wyoming.Listen)
	}
	if c.Skins.OpenClaw != "" {
		d.checkAddresses("skins.openclaw", c.Skins.OpenClaw)
	}
	// If no appliance runs, checkMQTT reports whether the address is free.
	if c.MQTT.Broker == config.EmbeddedBroker && d.status != nil && !d.reportsFault("mqtt") {
		d.checkAddresses("mqtt.listen", c.MQTT.Listen)
	}
}

// checkAddresses checks the addresses that a key of the configuration sets.
func (d *Examination) checkAddresses(key string, addresses ...string) {
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
			d.add("port "+a, nil, "in use, probably by the appliance")
		default:
			d.add("port "+a, listener.Error(a, key, err), "")
		}
	}
}

// checkName resolves the appliance's name as a robot does.
func (d *Examination) checkName(ctx context.Context) {
	d.checkAvahi()
	switch {
	case d.status == nil && !d.Config.MDNS.Enabled:
		d.add("name", nil, "not announced: turned off by mdns.enabled; robots must be given the address")
		return
	case d.status != nil && !slices.ContainsFunc(d.status.Parts, func(p admin.Part) bool {
		return p.Name == "mdns" && p.OK && !strings.HasPrefix(p.Note, network.NotAnnounced)
	}):
		return // the running appliance reports in the part mdns why the name is not announced
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	host := d.Config.Name + ".local"
	addr, err := d.resolve(ctx, host)
	switch {
	case errors.Is(err, mdns.ErrNoMulticast):
		d.add("name", nil, "no interface carries multicast here; robots must be given the address")
	case err != nil && d.status == nil:
		d.add("name", nil, fmt.Sprintf("%s is free", host))
	case err != nil:
		d.add("name",
			fmt.Errorf("%s is not answered on the network (%w); give robots the address instead, or see whether a firewall stops UDP port 5353", host,
				err), "")
	case !d.isOurs(addr):
		d.add("name", errors.New(network.NameTaken(host, addr)), "")
	default:
		d.add("name", nil, fmt.Sprintf("%s is %s", host, addr))
	}
}

// isOurs reports whether an address belongs to this machine. It returns true if the machine's addresses
// are unknown.
func (d *Examination) isOurs(addr netip.Addr) bool {
	ours, err := d.addresses()
	return err != nil || slices.ContainsFunc(ours, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap().WithZone("") == addr.Unmap().WithZone("")
	})
}

// otherStacks matches the line of avahi's configuration that forbids other responders.
var otherStacks = regexp.MustCompile(`(?m)^\s*disallow-other-stacks\s*=\s*yes`)

// checkAvahi reports an avahi-daemon whose configuration forbids other mDNS responders, such as
// Perch's.
func (d *Examination) checkAvahi() {
	const file = "etc/avahi/avahi-daemon.conf"
	text, err := os.ReadFile(filepath.Join(d.root, file))
	if _, socketErr := os.Stat(filepath.Join(d.root, "run/avahi-daemon/socket")); err != nil || socketErr != nil {
		return // avahi is not installed, or does not run
	}
	if otherStacks.Match(text) {
		d.add("avahi",
			fmt.Errorf("/%s lets no other program answer for names (disallow-other-stacks=yes); set it to no and run sudo systemctl restart avahi-daemon",
				file), "")
	}
}

// checkRobots lists the robots that wait to be adopted, and the latest refused request.
func (d *Examination) checkRobots(ctx context.Context) {
	var waiting []string
	switch {
	case d.running != nil:
		var list []struct{ ID, Waiting string }
		if err := d.running.Get(ctx, "/api/v1/devices", &list); err != nil {
			d.add("robots", fmt.Errorf("they cannot be listed: %w", err), "")
			return
		}
		for _, r := range list {
			if r.Waiting != "" {
				waiting = append(waiting, r.ID)
			}
		}
		var refused []Refused
		if err := d.running.Get(ctx, "/api/v1/refused", &refused); err == nil && len(refused) > 0 {
			d.add("robots", nil, "note: "+refused[0].String())
		}
	case d.store != nil:
		for _, r := range store.NewTable[device.Robot](d.store.DB, "robots").All() {
			if r.Claim != nil {
				waiting = append(waiting, string(r.ID))
			}
		}
	}
	if len(waiting) == 0 {
		return
	}
	shown := waiting[:min(len(waiting), 5)]
	if len(waiting) == 1 {
		d.add("robots", nil, fmt.Sprintf("note: 1 robot waits to be adopted (%s); perch robot list says why, perch robot adopt ROBOT adopts one", shown[0]))
		return
	}
	d.add("robots", nil, fmt.Sprintf("note: %d robots wait to be adopted (%s); perch robot list says why, perch robot adopt ROBOT adopts one", len(waiting),
		strings.Join(shown, ", ")))
}

// checkMQTT tries to connect to the broker, or to listen on the address of the embedded broker. It does
// nothing if no broker is configured, or if an appliance runs, which reports the condition of MQTT itself.
func (d *Examination) checkMQTT(ctx context.Context) {
	m := d.Config.MQTT
	if d.status != nil || d.locked || m.Broker == "none" {
		return
	}
	m, err := hassapp.FindBroker(ctx, m)
	if err != nil {
		d.add("mqtt", err, "")
		return
	}
	o, err := m.MirrorOptions()
	if err != nil {
		d.addIfReadable("mqtt", err, "")
		return
	}
	o.ID, o.Password = d.identity(), cmp.Or(o.Password, "unused password")
	mirror, err := homeassistant.New(o)
	if err == nil {
		err = mirror.Probe(ctx)
	}
	note := "the broker accepts the connection"
	if m.Broker == config.EmbeddedBroker {
		note = fmt.Sprintf("%s is free for the embedded broker", m.Listen)
	}
	d.add("mqtt", err, note)
}

// identity returns the ID of the appliance that owns the data directory, or "00000000" if the ID is unknown.
// The probe of a broker needs the ID to recognize the appliance's own messages.
func (d *Examination) identity() string {
	if d.store != nil {
		if id, found, err := store.NewTable[string](d.store.DB, "appliance").Get("id"); err == nil && found {
			return id
		}
	}
	return "00000000"
}

// Refused describes refused requests of a robot (check-ins or handshakes of a WebSocket), as the admin API
// returns them.
type Refused struct {
	At      time.Time `json:"at"` // time of the latest attempt
	Address string    `json:"address"`
	Device  string    `json:"device"`
	Reason  string    `json:"reason"`
	Count   int       `json:"count"` // number of attempts so far
}

// String returns a sentence for a terminal.
func (r Refused) String() string {
	return fmt.Sprintf("refused: a request from %s as %q, at %s (%d so far): %s", plain.Text(r.Address), plain.Text(r.Device),
		r.At.Local().Format(time.TimeOnly), r.Count, plain.Text(r.Reason))
}
