package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"perch/gateway/admin"
	"perch/gateway/mdns"
)

// finding is one line of the doctor's: something that works, or a cause and
// its cure.
type finding struct {
	ok         bool
	part, note string
	warn       bool // it works, and should be mended all the same
}

// errUnwell makes the doctor's exit code.
var errUnwell = errors.New("not everything works; the lines above say what and how to mend it")

// doctor says what works. It asks a running appliance where there is one, and
// looks for itself where there is none.
func doctor(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	f := newFlags("doctor")
	secrets := doctorFlags(f, &s)
	if _, err := parse(f, args, 0, 0); err != nil {
		return err
	}
	c, err := s.load()
	if err != nil {
		return err
	}
	d := newExamination(&c, configPath(s.config), s.data)
	defer d.close()
	d.examine(ctx)
	unwell := false
	for _, f := range d.findings {
		mark := "ok  "
		switch {
		case !f.ok:
			mark, unwell = "FAIL", true
		case f.warn:
			mark = "WARN"
		}
		fmt.Fprintf(out, "%s  %-12s %s\n", mark, f.part, f.note)
	}
	if *secrets {
		showSecrets(out, d.config, d.data)
	}
	if unwell {
		return errUnwell
	}
	return nil
}

func doctorFlags(f *flag.FlagSet, s *settings) (secrets *bool) {
	s.register(f)
	return f.Bool("show-secrets", false, "show the generated passwords")
}

// examination collects findings.
type examination struct {
	config   *config
	file     string // of the configuration; empty where there is none
	data     string
	named    string // the data as it was named; empty is the service's, or what is here
	findings []finding
	running  *client       // to the appliance that runs here, if one does
	status   *admin.Status // of that
	store    *copied       // of one that does not run; nil where there is none to be read

	// The surroundings, which a test has made.
	root     string // of the machine's files, "/"
	now      func() time.Time
	built    time.Time
	resolve  func(ctx context.Context, host string) (netip.Addr, error)
	own      func() ([]net.Addr, error)
	free     func(dir string) (int64, error)
	services func(ctx context.Context) (string, error) // what systemd says of the unit
}

// newExamination looks at the data that is named, else at the service's, which
// its owner alone may be able to read.
func newExamination(c *config, file, named string) *examination {
	data := dataPath(named)
	if _, err := os.Stat(systemData); named == "" && err == nil && os.Getenv("STATE_DIRECTORY") == "" {
		data = systemData
	}
	if filepath.Clean(named) == systemData {
		named = ""
	}
	return &examination{config: c, file: file, data: data, named: named, root: "/", now: time.Now, built: builtAt(), resolve: mdns.Resolve,
		own: net.InterfaceAddrs, free: freeSpace, services: askSystemd}
}

func (d *examination) close() {
	if d.store != nil {
		d.store.close()
	}
}

func (d *examination) add(part string, err error, fine string) {
	if err != nil {
		d.findings = append(d.findings, finding{part: part, note: err.Error()})
		return
	}
	d.findings = append(d.findings, finding{ok: true, part: part, note: fine})
}

func (d *examination) examine(ctx context.Context) {
	d.configuration()
	d.secrets()
	d.appliance(ctx)
	d.unit(ctx)
	d.encryption()
	d.disk()
	d.database()
	d.clock()
	d.ports()
	d.engines(ctx)
	d.mqtt(ctx)
	d.names(ctx)
	d.robots(ctx)
}

// appliance asks the one that runs on this machine's data.
func (d *examination) appliance(ctx context.Context) {
	r := reach{data: d.named}
	c, err := r.client()
	if err != nil && !errors.Is(err, errNoneRuns) {
		d.add("appliance", err, "")
		return
	}
	if err != nil {
		d.add("appliance", nil, "does not run; this is what it would find")
		return
	}
	var status admin.Status
	if err := c.do(ctx, http.MethodGet, "/api/v1/status", nil, &status); err != nil {
		d.add("appliance", fmt.Errorf("it has a socket, and cannot be asked: %w; if none runs, start one: what is left of an earlier one is put away then", err), "")
		return
	}
	d.running, d.status = c, &status
	d.add("appliance", d.another(status.Version), fmt.Sprintf("version %s runs since %s with %d robots, %d connected",
		status.Version, status.Started.Local().Format(time.DateTime), status.Robots, status.Open))
	for _, p := range status.Parts {
		d.findings = append(d.findings, finding{ok: p.OK, part: p.Name, note: p.Note})
	}
}

// another finds that what runs is not what is installed.
func (d *examination) another(running string) error {
	if running == version {
		return nil
	}
	return fmt.Errorf("version %s runs, and this program is %s; restart the appliance to run what is installed", running, version)
}

// told reports whether the running appliance has spoken of a part.
func (d *examination) told(part string) bool {
	return d.status != nil && slices.ContainsFunc(d.status.Parts, func(p admin.Part) bool { return p.Name == part })
}

// configuration has no faults that keep the appliance from starting, or the
// doctor would not have come so far.
func (d *examination) configuration() {
	if err := d.config.checkRecognizer(); err != nil {
		d.add("configuration", fmt.Errorf("%w; perch check-config says where", err), "")
		return
	}
	file := d.file
	if file == "" {
		file = "no file: the defaults"
	}
	d.add("configuration", nil, file)
}

func (d *examination) ports() {
	keys := map[string][]string{"listen": d.config.Listen, "local": d.config.Local, "tls.listen": d.config.TLS.Listen}
	if l := d.config.Wyoming.Listen; l != "" {
		keys["wyoming.listen"] = []string{l}
	}
	if m := d.config.MQTT; m.Broker == embedded && d.status != nil {
		keys["mqtt.listen"] = []string{m.Listen} // of one that does not run, the broker itself is tried
	}
	for _, key := range []string{"listen", "local", "tls.listen", "wyoming.listen", "mqtt.listen"} {
		for _, a := range keys[key] {
			d.port(key, a)
		}
	}
}

func (d *examination) port(key, a string) {
	l, err := net.Listen("tcp", a)
	switch {
	case err == nil && d.status != nil:
		d.add("port "+a, errors.Join(fmt.Errorf("the running appliance does not serve it; restart it to use this configuration (%s)", key), l.Close()), "")
	case err == nil:
		d.add("port "+a, l.Close(), "free")
	case d.status != nil && errors.Is(err, syscall.EADDRINUSE):
		d.add("port "+a, nil, "served by the appliance")
	default:
		d.add("port "+a, listenError(a, key, err), "")
	}
}

func showSecrets(out io.Writer, c *config, data string) {
	names := []string{"admin-token"}
	if c.MQTT.generated() {
		names = append(names, mqttSecret)
		fmt.Fprintf(out, "      mqtt-user: %s\n", cmp.Or(c.MQTT.User, mqttUser))
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
