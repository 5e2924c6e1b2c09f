// Command perch-portal helps a machine that has no network: it opens the Wi-Fi access point
// Perch-XXXX. A person joins the access point with a phone, and chooses the machine's network on a
// web page. The access point opens if the machine has no network about a minute after its start, or
// has lost the network for ten minutes, but not during a conversation with a robot.
//
// Anybody nearby can submit the form, without a login. Forms are therefore limited in size and
// rate, are handled one at a time, and can change nothing but the network, the country, the
// name and the language.
package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"perch/packaging/image/board"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	machine := board.Machine{Root: "/", Run: board.RunProgram}
	client := newPerch(perchSocket)
	p := &portal{
		radio:   &networkManager{Machine: machine, program: "nmcli"},
		perch:   client,
		machine: machine,
		page:    newPage(client.accepts),
		log:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
		listen:  func() (net.Listener, error) { return net.Listen("tcp4", net.JoinHostPort(apAddress, "80")) },
		host:    apAddress,
	}
	p.run(ctx, uptime())
}

// uptime returns how long the machine has been running, or 0 if unknown.
func uptime() time.Duration {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	seconds, _, _ := strings.Cut(string(text), " ")
	d, err := time.ParseDuration(seconds + "s")
	if err != nil {
		return 0
	}
	return d
}

// portal opens and closes the access point. Only one goroutine may use it.
type portal struct {
	radio   radio
	perch   appliance
	machine board.Machine
	page    *page
	log     *slog.Logger
	listen  func() (net.Listener, error)
	host    string // host name of the page

	state     state
	stop      func()   // stops serving the page; nil while the page is not served
	name      string   // name of the access point
	announced bool     // the robots were asked to announce the access point
	failed    error    // reason why the latest network was not joined; nil if it was joined, or no network was tried
	last      form     // the latest submitted form, without its key
	form      *form    // a submitted form that is not handled yet, or nil
	logged    [2]error // the latest logged error of the radio, and of Perch
}

// radio controls the machine's networks. See networkManager for its methods.
type radio interface {
	poll(ctx context.Context) (network, raised bool, err error)
	hasSavedNetworks(ctx context.Context) (bool, error)
	hasRadio() bool
	suffix() string
	scan(ctx context.Context) ([]scanned, error)
	raise(ctx context.Context, ssid string) error
	lower(ctx context.Context)
	join(ctx context.Context, n board.Network) error
	setCountry(code string) error
	cleanUp(ctx context.Context)
}

// appliance sends requests to the Perch that runs on this machine. See perch for its methods.
type appliance interface {
	robots(ctx context.Context) (talking, connected bool, err error)
	identity(ctx context.Context) (name, language string, err error)
	set(ctx context.Context, key, value string) error
	restart(ctx context.Context) error
	announce(ctx context.Context, text string) error
}

const (
	// Intervals between checks. The long one applies with a network, and while the access point is
	// open, because running nmcli is expensive.
	shortInterval = 5 * time.Second
	longInterval  = 30 * time.Second
	// responseDelay is the time that the response to a form needs to reach the phone, before
	// the access point is closed.
	responseDelay = 3 * time.Second
)

// run checks the network at intervals, and acts on the result, until ctx ends. uptime is the time since the start of the
// machine.
func (p *portal) run(ctx context.Context, uptime time.Duration) {
	p.state = initialState(uptime)
	p.radio.cleanUp(ctx)
	defer func() {
		// ctx has ended. The calls below have their own timeouts.
		p.close()
		p.radio.lower(context.WithoutCancel(ctx))
	}()
	for {
		interval := shortInterval
		if p.check(ctx); p.state.offlineSince.IsZero() && p.state.waitFor == lostWait || p.state.up {
			interval = longInterval
		}
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			return
		case f := <-p.page.forms:
			p.form = &f
			sleep(ctx, responseDelay)
		case <-timer.C:
		}
		timer.Stop()
	}
}

// sleep waits for a duration, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Indices of portal.logged.
const (
	radioLog = 0
	perchLog = 1
)

// logOnce logs an error of a source, unless it has the same text as the source's previous error. A nil
// error means that the source works again.
func (p *portal) logOnce(source int, err error) {
	if err != nil && (p.logged[source] == nil || p.logged[source].Error() != err.Error()) {
		p.log.Warn(err.Error())
	}
	p.logged[source] = err
}

// check checks the network once, and carries out the next step.
func (p *portal) check(ctx context.Context) {
	network, raised, err := p.radio.poll(ctx)
	saved := false
	if err == nil && !network && p.state.up { // step uses saved only in this case
		saved, err = p.radio.hasSavedNetworks(ctx)
	}
	p.logOnce(radioLog, err)
	if err != nil {
		return // NetworkManager is starting, or being updated
	}
	talking, connected := false, false
	if !network {
		talking, connected, err = p.perch.robots(ctx)
		p.logOnce(perchLog, err)
	}
	wasUp := p.state.up
	var next action
	p.state, next = step(p.state, time.Now(), observation{network: network, raised: raised, radio: p.radio.hasRadio(), talking: talking, saved: saved,
		used: p.page.lastUsed(), form: p.form != nil})
	if network {
		p.failed, p.form = nil, nil
	}
	switch next {
	case raise:
		p.raise(ctx)
	case lower:
		p.close()
		p.radio.lower(ctx)
		p.log.Info("the access point is down", "name", p.name)
	case join:
		p.join(ctx, *p.form)
		p.form = nil
	}
	if p.state.up && wasUp && connected && !p.announced {
		p.announced = true
		_, lang, _ := p.perch.identity(ctx) // English if unknown
		p.logOnce(perchLog, p.perch.announce(ctx, p.page.words.In(lang).Message("portal.offline", "name", p.name)))
	}
}

// raise opens the access point and serves the page. If that fails, the access point is closed again.
func (p *portal) raise(ctx context.Context) {
	p.name, p.announced = "Perch-"+p.radio.suffix(), false
	found, err := p.radio.scan(ctx) // before raise, since a radio cannot scan well with an open access point
	p.logOnce(radioLog, err)
	found = slices.DeleteFunc(found, func(s scanned) bool { return s.SSID == p.name })
	if err = p.radio.raise(ctx, p.name); err == nil {
		var l net.Listener
		if l, err = p.listen(); err == nil {
			s := content{accessPoint: p.name, networks: found, failed: p.failed, tried: p.last.network.SSID, country: p.last.country}
			if s.name, s.language, err = p.perch.identity(ctx); err != nil {
				s.name, _ = os.Hostname()
			}
			p.page.setContent(p.host, s)
			p.stop = serve(l, p.page)
			p.log.Info("the access point is up", "name", p.name, "count", len(found))
			return
		}
	}
	p.logOnce(radioLog, err)
	p.radio.lower(ctx)
	p.state = stateAfterFailure(time.Now())
}

// close stops serving the page.
func (p *portal) close() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

// join joins the network in the form, and then applies the other fields of the form. It restarts
// Perch if its configuration was changed.
func (p *portal) join(ctx context.Context, f form) {
	p.close()
	p.last = f
	p.last.network.Key = ""
	p.radio.lower(ctx)
	if err := p.radio.setCountry(f.country); err != nil {
		p.log.Warn("the country of the radio was not set", "err", err)
	}
	if p.failed = p.radio.join(ctx, f.network); p.failed != nil {
		p.log.Warn("the network was not joined", "err", p.failed)
		return
	}
	p.log.Info("a network was joined")
	if err := p.machine.SetCountry(f.country); err != nil {
		p.log.Warn("the country was not saved", "err", err)
	}
	changed := false
	name, lang, err := p.perch.identity(ctx)
	if f.name != "" && (err != nil || f.name != name) {
		if err := p.machine.SetHostname(f.name); err != nil {
			p.log.Warn("the name of the machine was not changed", "err", err)
		}
		changed = p.set(ctx, "name", f.name) || changed
	}
	if f.language != "" && (err != nil || f.language != lang) {
		changed = p.set(ctx, "language", f.language) || changed
	}
	if changed {
		if err := p.perch.restart(ctx); err != nil {
			p.log.Warn("perch was not restarted", "err", err)
		}
	}
}

// set sets a key of Perch's configuration, and reports whether Perch accepted the value.
func (p *portal) set(ctx context.Context, key, value string) bool {
	err := p.perch.set(ctx, key, value)
	if err != nil {
		p.log.Warn("the configuration was not changed", "key", key, "err", err)
	}
	return err == nil
}
