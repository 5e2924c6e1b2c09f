// Command perch-portal connects a machine without a network: it opens a Wi-Fi access point,
// Perch-XXXX, where a person chooses a network with a phone. It does so at the start, and when
// the network has been gone for ten minutes and nobody is talking.
//
// Anybody near may submit the form, up to 10 000 times. Forms are bounded and handled one at a
// time, and can only do what the owner could: set a network, a country, a name and a language.
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
	own := newPerch(perchSocket)
	p := &portal{
		radio:   &networkManager{Machine: machine, program: "nmcli"},
		perch:   own,
		machine: machine,
		page:    newPage(own.fits),
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
	first, _, _ := strings.Cut(string(text), " ")
	d, err := time.ParseDuration(first + "s")
	if err != nil {
		return 0
	}
	return d
}

// portal runs the access point. It is used by one goroutine.
type portal struct {
	radio   radio
	perch   appliance
	machine board.Machine
	page    *page
	log     *slog.Logger
	listen  func() (net.Listener, error)
	host    string // of the page

	state     state
	stop      func()   // stops serving the page; nil while it is not served
	name      string   // of the access point
	announced bool     // a robot has announced the access point
	failed    error    // why the last network was not joined
	last      form     // submitted last
	form      *form    // submitted and not handled yet
	logged    [2]error // last logged, of the radio and of Perch
}

// radio is the machine's network.
type radio interface {
	poll(ctx context.Context) (network, raised bool, err error)
	hasKnown(ctx context.Context) (bool, error)
	there() bool
	suffix() string
	scan(ctx context.Context) ([]scanned, error)
	raise(ctx context.Context, ssid string) error
	lower(ctx context.Context)
	join(ctx context.Context, n board.Network) error
	country(code string) error
	clean(ctx context.Context)
}

// appliance is the Perch that runs on the machine.
type appliance interface {
	robots(ctx context.Context) (talking, near bool, err error)
	identity(ctx context.Context) (name, language string, err error)
	set(ctx context.Context, key, value string) error
	restart(ctx context.Context) error
	announce(ctx context.Context, text string) error
}

const (
	// Times between checks without and with a network: nmcli is expensive.
	checkEvery  = 5 * time.Second
	checkRarely = 30 * time.Second
	// answerWithin is the time for the answer to a form to reach the phone.
	answerWithin = 3 * time.Second
)

// run checks and acts until ctx ends.
func (p *portal) run(ctx context.Context, ago time.Duration) {
	p.state = initialState(ago)
	p.radio.clean(ctx)
	defer func() {
		// ctx has ended; the cleanup has its own deadlines.
		p.close()
		p.radio.lower(context.WithoutCancel(ctx))
	}()
	for {
		interval := checkEvery
		if p.check(ctx); p.state.gone.IsZero() && p.state.waitFor == goneFor || p.state.up {
			interval = checkRarely
		}
		tick := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			return
		case f := <-p.page.forms:
			p.form = &f
			sleep(ctx, answerWithin)
		case <-tick.C:
		}
		tick.Stop()
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// logOnce logs an error unless it is the last logged one.
func (p *portal) logOnce(of int, err error) {
	if err != nil && (p.logged[of] == nil || p.logged[of].Error() != err.Error()) {
		p.log.Warn(err.Error())
	}
	p.logged[of] = err
}

// check checks the network once, and acts.
func (p *portal) check(ctx context.Context) {
	network, raised, err := p.radio.poll(ctx)
	known := false
	if err == nil && !network && p.state.up { // otherwise it does not matter
		known, err = p.radio.hasKnown(ctx)
	}
	p.logOnce(0, err)
	if err != nil {
		return // NetworkManager is starting, or being updated
	}
	talking, near := false, false
	if !network {
		talking, near, err = p.perch.robots(ctx)
		p.logOnce(1, err)
	}
	before := p.state
	var what act
	p.state, what = step(p.state, time.Now(), observation{network: network, raised: raised, radio: p.radio.there(), talking: talking, known: known,
		used: p.page.lastUsed(), form: p.form != nil})
	if network {
		p.failed, p.form = nil, nil
	}
	switch what {
	case raise:
		p.raise(ctx)
	case lower:
		p.close()
		p.radio.lower(ctx)
		p.log.Info("the access point is down", "name", network)
	case join:
		p.join(ctx, *p.form)
		p.form = nil
	}
	if p.state.up && before.up && near && !p.announced {
		p.announced = true
		_, speaks, _ := p.perch.identity(ctx) // English if unknown
		p.logOnce(1, p.perch.announce(ctx, p.page.words.In(speaks).Message("portal.offline", "name", p.name)))
	}
}

// raise opens the access point and serves the page on it.
func (p *portal) raise(ctx context.Context) {
	p.name, p.announced = "Perch-"+p.radio.suffix(), false
	found, err := p.radio.scan(ctx) // before the access point, since one radio cannot do both well
	p.logOnce(0, err)
	found = slices.DeleteFunc(found, func(s scanned) bool { return s.SSID == p.name })
	if err = p.radio.raise(ctx, p.name); err == nil {
		var l net.Listener
		if l, err = p.listen(); err == nil {
			s := shown{accessPoint: p.name, networks: found, failed: p.failed, tried: p.last.network.SSID, country: p.last.country}
			if s.name, s.language, err = p.perch.identity(ctx); err != nil {
				s.name, _ = os.Hostname()
			}
			p.page.setContent(p.host, s)
			p.stop = serve(l, p.page)
			p.log.Info("the access point is up", "name", p.name, "count", len(found))
			return
		}
	}
	p.logOnce(0, err)
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

// join joins the form's network, and then applies its other fields.
func (p *portal) join(ctx context.Context, f form) {
	p.close()
	p.last = f
	p.last.network.Key = ""
	p.radio.lower(ctx)
	if err := p.radio.country(f.country); err != nil {
		p.log.Warn("the radio does not take the country", "err", err)
	}
	if p.failed = p.radio.join(ctx, f.network); p.failed != nil {
		p.log.Warn("the network was not joined", "err", p.failed)
		return
	}
	p.log.Info("a network was joined")
	if err := p.machine.Country(f.country); err != nil {
		p.log.Warn("the country is not kept", "err", err)
	}
	changed := false
	name, speaks, err := p.perch.identity(ctx)
	if f.name != "" && (err != nil || f.name != name) {
		if err := p.machine.Hostname(f.name); err != nil {
			p.log.Warn("the machine does not take the name", "err", err)
		}
		changed = p.set(ctx, "name", f.name) || changed
	}
	if f.language != "" && (err != nil || f.language != speaks) {
		changed = p.set(ctx, "language", f.language) || changed
	}
	if changed {
		if err := p.perch.restart(ctx); err != nil {
			p.log.Warn("perch does not restart", "err", err)
		}
	}
}

// set sets a key of Perch's configuration, if Perch would start with it.
func (p *portal) set(ctx context.Context, key, value string) bool {
	err := p.perch.set(ctx, key, value)
	if err != nil {
		p.log.Warn("the configuration stays", "key", key, "err", err)
	}
	return err == nil
}
