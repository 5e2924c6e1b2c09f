package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
}

// errUnwell makes the doctor's exit code.
var errUnwell = errors.New("not everything works; the lines above say what and how to mend it")

// doctor says what works. It asks a running appliance where there is one, and
// looks for itself where there is none.
func doctor(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	f := newFlags("doctor")
	s.register(f)
	secrets := f.Bool("show-secrets", false, "show the generated passwords")
	if _, err := parse(f, args, 0, 0); err != nil {
		return err
	}
	c, err := s.load()
	if err != nil {
		return err
	}
	d := examination{config: &c, data: dataPath(s.data)}
	d.examine(ctx)
	unwell := false
	for _, f := range d.findings {
		mark := "ok  "
		if !f.ok {
			mark, unwell = "FAIL", true
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

// examination collects findings.
type examination struct {
	config   *config
	data     string
	findings []finding
	status   *admin.Status // of the appliance that runs here, if one does
}

func (d *examination) add(part string, err error, fine string) {
	if err != nil {
		d.findings = append(d.findings, finding{false, part, err.Error()})
		return
	}
	d.findings = append(d.findings, finding{true, part, fine})
}

func (d *examination) examine(ctx context.Context) {
	d.appliance(ctx)
	d.ports()
	d.disk()
	d.clock()
	d.engines(ctx)
	d.mqtt(ctx)
	d.names(ctx)
}

// appliance asks the one that runs on this machine's data.
func (d *examination) appliance(ctx context.Context) {
	r := reach{data: d.data}
	c, err := r.client()
	if err == nil {
		var status admin.Status
		if err = c.do(ctx, http.MethodGet, "/api/v1/status", nil, &status); err == nil {
			d.status = &status
			d.add("appliance", nil, fmt.Sprintf("version %s runs since %s with %d robots, %d connected",
				status.Version, status.Started.Local().Format(time.DateTime), status.Robots, status.Open))
			for _, p := range status.Parts {
				d.findings = append(d.findings, finding{p.OK, p.Name, p.Note})
			}
			return
		}
	}
	d.add("appliance", nil, "does not run; this is what it would find")
}

func (d *examination) ports() {
	keys := map[string][]string{"listen": d.config.Listen, "local": d.config.Local}
	if l := d.config.Wyoming.Listen; l != "" {
		keys["wyoming.listen"] = []string{l}
	}
	for _, key := range []string{"listen", "local", "wyoming.listen"} {
		for _, a := range keys[key] {
			l, err := net.Listen("tcp", a)
			switch {
			case err == nil && d.status != nil:
				d.add("port "+a, errors.Join(fmt.Errorf("the running appliance does not serve it; restart it to use this configuration"), l.Close()), "")
			case err == nil:
				d.add("port "+a, l.Close(), "free")
			case d.status != nil && errors.Is(err, syscall.EADDRINUSE):
				d.add("port "+a, nil, "served by the appliance")
			default:
				d.add("port "+a, listenError(a, key, err), "")
			}
		}
	}
}

func (d *examination) disk() {
	dir := d.data
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	if !writable(dir) {
		d.add("disk", fmt.Errorf("%s cannot be written by this user; run as its owner, or name another with --data", dir), "")
		return
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		d.add("disk", err, "")
		return
	}
	free := int64(fs.Bavail) * int64(fs.Bsize)
	if free < leastFree {
		d.add("disk", fmt.Errorf("%d MB are free for %s; make room", free>>20, d.data), "")
		return
	}
	d.add("disk", nil, fmt.Sprintf("%s is writable, %d MB free", d.data, free>>20))
}

// clock finds the clock of a Pi that has none and no network yet. Robots get
// their time from it.
func (d *examination) clock() {
	if now := time.Now(); now.Year() < 2026 {
		d.add("clock", fmt.Errorf("it says %s; connect the machine to a network with a time server", now.Format(time.DateTime)), "")
		return
	}
	zone, err := d.config.zone()
	if err != nil {
		d.add("clock", err, "")
		return
	}
	d.add("clock", nil, time.Now().In(zone).Format("2006-01-02 15:04 MST"))
}

// names asks for the appliance's name as a robot does.
func (d *examination) names(ctx context.Context) {
	if d.status == nil || !slices.ContainsFunc(d.status.Parts, func(p admin.Part) bool { return p.Name == "mdns" && p.OK && !strings.HasPrefix(p.Note, notAnnounced) }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	host := d.config.Name + ".local"
	addr, err := mdns.Resolve(ctx, host)
	if errors.Is(err, mdns.ErrNoMulticast) {
		d.add("name", nil, "no interface carries multicast here; robots must be given the address")
		return
	}
	if err != nil {
		err = fmt.Errorf("%s is not answered on the network (%w); give robots the address instead", host, err)
	}
	d.add("name", err, fmt.Sprintf("%s is %s", host, addr))
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
