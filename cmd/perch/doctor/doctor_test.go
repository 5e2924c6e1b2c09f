package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/cmd/perch/config"
	"perch/cmd/perch/machine"
	"perch/device"
	"perch/gateway/mdns"
	"perch/gateway/owner/admin"
	"perch/must"
	"perch/store"
	"perch/store/archive"
	"perch/voice/sphinx"
)

// Examined returns an examination of a machine without faults. Its files are in temporary
// folders, and it does not examine the real machine.
func Examined(t *testing.T) *Examination {
	t.Helper()
	c := config.Default()
	c.Listen, c.Local, c.MQTT.Broker, c.Robots.MQTT.Listen = []string{"127.0.0.1:0"}, []string{"127.0.0.1:0"}, "none", "127.0.0.1:0"
	d := New(Options{Config: &c, Data: t.TempDir(), Version: "dev", Built: machine.BuiltAt(""), Connect: connect})
	t.Cleanup(d.Close)
	d.root, d.now, d.Built = t.TempDir(), time.Now, time.Now().Add(-time.Hour)
	d.resolve = func(context.Context, string) (netip.Addr, error) { return netip.MustParseAddr("192.0.2.5"), nil }
	d.addresses = func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.IPv4(192, 0, 2, 5), Mask: net.CIDRMask(24, 32)}}, nil
	}
	d.free = func(string) (int64, error) { return 1 << 40, nil }
	d.services = func(context.Context) (string, error) { return "ActiveState=active\nUnitFileState=enabled\n", nil }
	must.Succeed(t, os.Chmod(d.Data, 0o750))
	return d
}

// socketClient is a client of the appliance with a socket.
type socketClient struct{ http.Client }

// connect implements Options.Connect for an appliance that has a socket in the data directory.
func connect(data string) (APIClient, error) {
	path := filepath.Join(data, "perch.sock")
	if _, err := os.Stat(path); err != nil {
		return nil, ErrNotRunning
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &socketClient{http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}, nil
}

func (c *socketClient) Get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://perch"+path, nil)
	if err != nil {
		return err
	}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

// write writes a file of the examined machine. path is below d.root, unless it begins with d.Data.
func (d *Examination) write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if !strings.HasPrefix(path, d.Data) {
		path = filepath.Join(d.root, path)
	}
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Succeed(t, os.WriteFile(path, []byte(text), mode))
	must.Succeed(t, os.Chmod(path, mode)) // WriteFile applies the umask
	return path
}

// packaged makes the examined machine use systemd, and installs the package's unit.
func (d *Examination) packaged(t *testing.T) {
	t.Helper()
	d.write(t, "usr/lib/systemd/system/perch.service", "[Service]\n", 0o644)
	d.write(t, "run/systemd/system/x", "", 0o644)
}

// newDatabase creates a database, as the first start does.
func (d *Examination) newDatabase(t *testing.T) *store.DB {
	t.Helper()
	db := must.Value(store.Open(archive.DatabasePath(d.Data), store.Options{}))(t)
	return db
}

// runs makes d use the status of a running appliance with the given parts.
func (d *Examination) runs(parts ...admin.Part) {
	d.status = &admin.Status{Version: "dev", Parts: parts}
}

// starting is a client of an appliance that was started at one time, and whose announcement works from another time on.
type starting struct{ started, announced time.Time }

func (s starting) Get(_ context.Context, path string, into any) error {
	if path == "/api/v1/status" {
		*into.(*admin.Status) = admin.Status{Version: "dev", Started: s.started, Parts: []admin.Part{{Name: "mdns", OK: !time.Now().Before(s.announced)}}}
	}
	return nil
}

// TestDoctorWaitsForTheStart: the doctor waits for a part that works two seconds after the start of the appliance. It
// does not wait if the appliance was started an hour ago.
func TestDoctorWaitsForTheStart(t *testing.T) {
	for age, want := range map[time.Duration]struct {
		waits time.Duration
		ok    bool
	}{0: {2 * time.Second, true}, time.Hour: {0, false}} {
		synctest.Test(t, func(t *testing.T) {
			d, began := Examined(t), time.Now()
			d.Connect = func(string) (APIClient, error) { return starting{began.Add(-age), began.Add(2 * time.Second)}, nil }
			d.checkAppliance(t.Context())
			if took := time.Since(began); took != want.waits || d.reportsFault("mdns") == want.ok {
				t.Errorf("after %v the doctor takes %v: %+v", age, took, d.Findings)
			}
		})
	}
}

// TestEachCheckOfTheDoctor: each check reports its fault with cause and remedy, and reports no
// fault of a machine without faults.
func TestEachCheckOfTheDoctor(t *testing.T) {
	announced := admin.Part{Name: "mdns", OK: true, Note: "perch.local, answered by perch"}
	unit := func(properties string) func(*testing.T, *Examination) {
		return func(t *testing.T, d *Examination) {
			d.packaged(t)
			d.services = func(context.Context) (string, error) { return properties, nil }
		}
	}
	resolves := func(err error, parts ...admin.Part) func(*testing.T, *Examination) {
		return func(_ *testing.T, d *Examination) {
			d.resolve = func(context.Context, string) (netip.Addr, error) { return netip.Addr{}, err }
			if parts != nil {
				d.runs(parts...)
			}
		}
	}
	system := func(t *testing.T, d *Examination) { d.checkUnit(t.Context()) }
	name := func(t *testing.T, d *Examination) { d.checkName(t.Context()) }
	file := func(name, text string, mode os.FileMode) func(*testing.T, *Examination) {
		return func(t *testing.T, d *Examination) { d.write(t, filepath.Join(d.Data, name), text, mode) }
	}
	for what, c := range map[string]struct {
		make  func(*testing.T, *Examination)
		check func(*testing.T, *Examination)
		part  string
		wrong bool
		says  []string
	}{
		"the configuration is read": {
			func(_ *testing.T, d *Examination) { d.File = "/etc/perch/perch.yaml" },
			func(_ *testing.T, d *Examination) { d.checkConfiguration() }, "configuration", false, []string{"/etc/perch/perch.yaml"}},
		"a model that is not installed": {
			func(_ *testing.T, d *Examination) {
				d.Config.Speech.Recognizers[0].Options.(*sphinx.Keys).Model = "/nowhere"
			},
			func(_ *testing.T, d *Examination) { d.checkConfiguration() }, "configuration", true, []string{"/nowhere", "apt install pocketsphinx-en-us",
				"check-config"}},

		"room enough": {nil, func(_ *testing.T, d *Examination) { d.checkDisk() }, "disk", false, []string{"1048576 MB free"}},
		"no room": {
			func(_ *testing.T, d *Examination) { d.free = func(string) (int64, error) { return 3 << 20, nil } },
			func(_ *testing.T, d *Examination) { d.checkDisk() }, "disk", true, []string{"3 MB are free", "make room"}},
		"data that anybody can change": {
			func(t *testing.T, d *Examination) {
				must.Succeed(t, os.Chmod(d.Data, 0o777))
			},
			func(_ *testing.T, d *Examination) { d.checkDisk() }, "data", true, []string{"anybody", "chmod o-rwx"}},
		"data that cannot be written": {
			func(t *testing.T, d *Examination) { d.Data = "/proc/nowhere" },
			func(_ *testing.T, d *Examination) { d.checkDisk() }, "data", true, []string{"cannot be written", "sudo -u perch", "--data"}},

		"the right time": {nil, func(_ *testing.T, d *Examination) { d.checkClock() }, "clock", false, []string{"20"}},
		"before this program was built": {
			func(_ *testing.T, d *Examination) {
				d.now = func() time.Time { return time.Date(1970, 1, 1, 0, 5, 0, 0, time.UTC) }
			},
			func(_ *testing.T, d *Examination) { d.checkClock() }, "clock", true, []string{"the clock shows 1970-01-01", "was built on", "time server"}},

		"secrets that are secret": {file("admin-token", "x", 0o600), func(_ *testing.T, d *Examination) { d.CheckSecrets() }, "secrets", false,
			[]string{"only their owner"}},
		"a token that its group can read": {file("admin-token", "x", 0o640), func(_ *testing.T, d *Examination) { d.CheckSecrets() }, "secrets", true,
			[]string{"admin-token", "chmod 600"}},
		"a password that everybody can read": {file("mqtt-password", "x", 0o604), func(_ *testing.T, d *Examination) { d.CheckSecrets() }, "secrets", true,
			[]string{"mqtt-password", "chmod 600"}},
		"the diary's key that everybody can read": {file("diary-key", "x", 0o604), func(_ *testing.T, d *Examination) { d.CheckSecrets() }, "secrets", true,
			[]string{"diary-key", "chmod 600"}},
		"the page's sessions that everybody can read": {file("page-sessions", "x", 0o604), func(_ *testing.T, d *Examination) { d.CheckSecrets() }, "secrets", true,
			[]string{"page-sessions", "chmod 600"}},
		"the authority's key that everybody can read": {file("https-authority.pem", "x", 0o604), func(_ *testing.T, d *Examination) { d.CheckSecrets() }, "secrets", true,
			[]string{"https-authority.pem", "chmod 600"}},

		"gestures, words, a character and a persona": {func(t *testing.T, d *Examination) {
			d.write(t, d.Data+"/gestures/a.json", `{"gestures":[{"name":"twirl","duration_ms":900,"frames":[{"at_ms":0,"yaw":9}]}]}`, 0o600)
			d.write(t, d.Data+"/words/de.txt", "concern: hatschert\n", 0o600)
			d.write(t, d.Data+"/characters/cook.json", `{"spec":"agent-manifest/0.2","name":"Cook"}`, 0o600)
			d.write(t, d.Data+"/personas/tom.md", "You are Tom.", 0o600)
		}, func(_ *testing.T, d *Examination) { d.checkFiles() }, "files", false, []string{"can be used"}},
		"a gesture too long": {file("gestures/b.json", `{"gestures":[{"name":"twirl","duration_ms":90000,"frames":[]}]}`, 0o600),
			func(_ *testing.T, d *Examination) { d.checkFiles() }, "files", true, []string{"gestures/b.json", "duration_ms", "frames", "restart"}},
		"a feeling that is none": {file("words/de.txt", "# hm\njoy: bärig\n", 0o600), func(_ *testing.T, d *Examination) { d.checkFiles() }, "files", true,
			[]string{"words/de.txt: line 2", "write for example", "restart"}},
		"a character that is none": {file("characters/cook.json", `{"spec":"agent-manifest/9"}`, 0o600),
			func(_ *testing.T, d *Examination) { d.checkFiles() }, "files", true, []string{"characters/cook.json", "perch character check"}},
		"a persona that does not end": {file("personas/tom.md", "---\nname: Tom\n", 0o600),
			func(_ *testing.T, d *Examination) { d.checkFiles() }, "files", true,
			[]string{"personas/tom.md", "line 1", "correct or remove it"}},
		"a skill without a manifest": {file("skills/tide/SKILL.md", "x", 0o600), func(_ *testing.T, d *Examination) { d.checkFiles() }, "files", true,
			[]string{"skills/tide", "perch skill check"}},
		"a skill that nobody has signed": {file("skills/tide/manifest.json", `{"name":"tide","version":"1.0.0","description":"x"}`, 0o600),
			func(_ *testing.T, d *Examination) { d.checkFiles() }, "files", true, []string{"skills/tide", "sign"}},

		"no database yet": {nil, func(_ *testing.T, d *Examination) { d.CheckDatabase() }, "database", false, []string{"first start creates it"}},
		"a database": {func(t *testing.T, d *Examination) { _ = d.newDatabase(t).Close() },
			func(_ *testing.T, d *Examination) { d.CheckDatabase() }, "database", false, []string{"can be read"}},
		"a database that is none": {file("perch.db", strings.Repeat("x", 100_000), 0o600),
			func(_ *testing.T, d *Examination) { d.CheckDatabase() }, "database", true, []string{"perch.db", "backup"}},
		"a database that others can read": {file("perch.db", "x", 0o644),
			func(_ *testing.T, d *Examination) { d.CheckDatabase() }, "database", true, []string{"can be read by others", "chmod 600"}},
		"a database in use": {
			func(t *testing.T, d *Examination) {
				db := d.newDatabase(t)
				t.Cleanup(func() { _ = db.Close() })
			},
			func(_ *testing.T, d *Examination) { d.CheckDatabase() }, "database", true, []string{"is in use, but no appliance has a socket for it",
				"ps -C perch"}},

		"a port that is free": {nil, func(_ *testing.T, d *Examination) { d.checkPorts() }, "port 127.0.0.1:0", false, []string{"free"}},
		"a port in use": {
			func(t *testing.T, d *Examination) { d.Config.Listen = []string{busy(t)} },
			func(_ *testing.T, d *Examination) { d.checkPorts() }, "port ", true, []string{"in use by another program", "listen in the configuration"}},
		"a port of Wyoming's in use": {
			func(t *testing.T, d *Examination) { d.Config.Wyoming.Listen = busy(t) },
			func(_ *testing.T, d *Examination) { d.checkPorts() }, "port ", true, []string{"wyoming.listen"}},
		"a port that the appliance does not serve": {
			func(_ *testing.T, d *Examination) { d.runs() },
			func(_ *testing.T, d *Examination) { d.checkPorts() }, "port ", true, []string{"does not serve it", "restart it"}},
		"a broker's port that the appliance does not serve": {
			func(t *testing.T, d *Examination) {
				d.Config.Listen, d.Config.Local, d.Config.MQTT.Broker, d.Config.MQTT.Listen = nil, nil, config.EmbeddedBroker, "127.0.0.1:0"
				d.runs()
			},
			func(_ *testing.T, d *Examination) { d.checkPorts() }, "port ", true, []string{"mqtt.listen"}},

		"a broker's port of which the appliance tells itself": {
			func(t *testing.T, d *Examination) {
				d.Config.Listen, d.Config.Local, d.Config.MQTT.Broker, d.Config.MQTT.Listen = nil, nil, config.EmbeddedBroker, busy(t)
				d.runs(admin.Part{Name: "mqtt", Note: "port " + d.Config.MQTT.Listen + " is taken by another program"})
			},
			func(_ *testing.T, d *Examination) { d.checkPorts() }, "", false, nil},

		"a socket that nobody answers at": {
			func(t *testing.T, d *Examination) { d.write(t, filepath.Join(d.Data, "perch.sock"), "", 0o600) },
			func(t *testing.T, d *Examination) { d.checkAppliance(t.Context()) }, "appliance", true, []string{"cannot be read", "start it"}},
		"another version, as after an update without a restart": {
			func(t *testing.T, d *Examination) { d.answers(t, `{"version":"0.1","started":"2026-11-01T00:00:00Z"}`) },
			func(t *testing.T, d *Examination) { d.checkAppliance(t.Context()) }, "appliance", true, []string{"version 0.1 runs", "restart the appliance"}},
		"none that runs": {nil, func(t *testing.T, d *Examination) { d.checkAppliance(t.Context()) }, "appliance", false, []string{"is not running"}},

		"no systemd": {func(t *testing.T, d *Examination) { d.write(t, "usr/lib/systemd/system/perch.service", "", 0o644) }, system, "", false, nil},
		"a unit":     {unit("ActiveState=active\nUnitFileState=enabled\n"), system, "unit", false, []string{"active"}},
		"a failed one": {unit("ActiveState=failed\nResult=exit-code\n"), system, "unit", true,
			[]string{"has failed (exit-code)", "journalctl -u perch"}},
		"one that ends again and again": {unit("ActiveState=activating\nSubState=auto-restart\nNRestarts=7\n"), system, "unit", true,
			[]string{"again and again (7 times", "journalctl"}},
		"one that has ended, and is not counted": {unit("ActiveState=activating\nSubState=auto-restart\nNRestarts=0\n"), system, "unit", true,
			[]string{"has ended, and is being restarted; sudo journalctl -u perch"}},
		"one that is just starting again": {unit("ActiveState=activating\nSubState=start\nNRestarts=3\n"), system, "unit", true,
			[]string{"again and again (3 times", "journalctl"}},
		"one whose configuration has faults": {unit("ActiveState=activating\nSubState=auto-restart\nNRestarts=1\nExecMainStatus=2\n"), system, "unit",
			true,
			[]string{"has ended, and is being restarted", "configuration has faults", "sudo perch check-config"}},
		"one that is starting": {unit("ActiveState=activating\nSubState=start\nNRestarts=0\n"), system, "unit", false, []string{"is starting"}},
		"one that systemd has not read anew": {unit("ActiveState=active\nNeedDaemonReload=yes\n"), system, "unit", true,
			[]string{"systemctl daemon-reload"}},
		"one that would not start at boot": {unit("ActiveState=active\nUnitFileState=disabled\n"), system, "unit", true,
			[]string{"systemctl enable perch"}},
		"one that was restarted": {unit("ActiveState=active\nNRestarts=2\n"), system, "unit", false, []string{"2 times", "journalctl"}},
		"one that is stopped":    {unit("ActiveState=inactive\n"), system, "unit", false, []string{"systemctl start perch"}},
		"an own one in the place of the package's": {
			func(t *testing.T, d *Examination) {
				d.packaged(t)
				d.write(t, config.OwnUnit, "[Service]\n", 0o644)
			}, system, "unit", true, []string{"replaces the package's unit", "systemctl daemon-reload", "systemctl edit"}},
		"a masked one": {
			func(t *testing.T, d *Examination) {
				d.packaged(t)
				d.write(t, "etc/systemd/system/x", "", 0o644)
				must.Succeed(t, os.Symlink("/dev/null", filepath.Join(d.root, config.OwnUnit)))
			}, system, "unit", true, []string{"systemctl unmask"}},
		"a systemd that does not answer": {
			func(t *testing.T, d *Examination) {
				d.packaged(t)
				d.services = func(context.Context) (string, error) { return "", errors.New("it has no bus") }
			}, system, "unit", true, []string{"no bus", "systemctl status"}},

		"its name":          {nil, name, "name", false, []string{"perch.local is 192.0.2.5"}},
		"a name nobody has": {resolves(mdns.ErrNoAnswer), name, "name", false, []string{"perch.local is free"}},
		"a name that is announced in vain": {resolves(mdns.ErrNoAnswer, announced), name, "name", true,
			[]string{"not answered on the network", "give robots the address", "5353"}},
		"no multicast":                     {resolves(mdns.ErrNoMulticast), name, "name", false, []string{"given the address"}},
		"a name that is known to be taken": {resolves(mdns.ErrNoAnswer, admin.Part{Name: "mdns", Note: "perch-2.local"}), name, "", false, nil},
		"a name that is not to be announced": {func(_ *testing.T, d *Examination) { d.Config.MDNS.Enabled = false }, name, "name", false,
			[]string{"mdns.enabled"}},
		"another machine's name": {
			func(_ *testing.T, d *Examination) {
				d.resolve = func(context.Context, string) (netip.Addr, error) { return netip.MustParseAddr("192.0.2.99"), nil }
			}, name, "name", true, []string{"another machine (192.0.2.99) has perch.local", "another name"}},
		"an avahi that shares with nobody": {
			func(t *testing.T, d *Examination) {
				d.write(t, "etc/avahi/avahi-daemon.conf", "[server]\ndisallow-other-stacks=yes\n", 0o644)
				d.write(t, "run/avahi-daemon/socket", "", 0o644)
			}, name, "avahi", true, []string{"disallow-other-stacks", "systemctl restart avahi-daemon"}},
		"an avahi that shares": {
			func(t *testing.T, d *Examination) {
				d.write(t, "etc/avahi/avahi-daemon.conf", "[server]\n#disallow-other-stacks=yes\n", 0o644)
				d.write(t, "run/avahi-daemon/socket", "", 0o644)
			}, name, "name", false, nil},

		"a broker that is not there": {
			func(t *testing.T, d *Examination) { d.Config.MQTT.Broker = "mqtt://127.0.0.1:9" },
			func(t *testing.T, d *Examination) { d.checkMQTT(t.Context()) }, "mqtt", true, []string{"127.0.0.1:9", "mqtt.broker"}},
		"a broker's port in use": {
			func(t *testing.T, d *Examination) {
				d.Config.MQTT.Broker, d.Config.MQTT.Listen = config.EmbeddedBroker, busy(t)
			},
			func(t *testing.T, d *Examination) { d.checkMQTT(t.Context()) }, "mqtt", true, []string{"taken by another program", "mqtt.broker"}},

		"no music": {nil, func(t *testing.T, d *Examination) { d.checkMusic(t.Context()) }, "", false, nil},
		"music without ffmpeg": {
			func(t *testing.T, d *Examination) {
				t.Setenv("PATH", t.TempDir())
				d.Config.Music = []config.Music{{Name: "jazz", Source: d.write(t, "jazz.mp3", "x", 0o600)}}
			},
			func(t *testing.T, d *Examination) { d.checkMusic(t.Context()) }, "music", true, []string{"ffmpeg is not installed", "apt install ffmpeg"}},
		"music that is missing": {
			func(t *testing.T, d *Examination) {
				d.Config.Music = []config.Music{{Name: "jazz", Source: "/nowhere/jazz.mp3"}}
			},
			func(t *testing.T, d *Examination) { d.checkMusic(t.Context()) }, "music", true, []string{"jazz cannot be played", "there is no /nowhere/jazz.mp3"}},

		"a robot that waits": {
			func(t *testing.T, d *Examination) {
				db := d.newDatabase(t)
				r := device.Robot{ID: "a0b1c2d3e4f5", Claim: &device.Claim{Client: device.Client{ID: "c0ffee00-0000-4000-8000-000000000000"}}}
				must.Succeed(t, errors.Join(store.NewTable[device.Robot](db, "robots").Put("a0b1c2d3e4f5", r), db.Close()))
				d.CheckDatabase()
			},
			func(t *testing.T, d *Examination) { d.checkRobots(t.Context()) }, "robots", false, []string{"1 robot waits", "a0b1c2d3e4f5", "perch robot adopt"}},
	} {
		t.Run(what, func(t *testing.T) {
			d := Examined(t)
			if c.make != nil {
				c.make(t, d)
			}
			c.check(t, d)
			if c.part == "" {
				if len(d.Findings) > 0 {
					t.Fatalf("it found %+v", d.Findings)
				}
				return
			}
			var of []finding
			for _, f := range d.Findings {
				if strings.HasPrefix(f.Part, c.part) && (!f.Ok || !c.wrong) {
					of = append(of, f)
				}
				if !f.Ok && !c.wrong {
					t.Errorf("it is well, and it found %+v", f)
				}
			}
			if len(of) == 0 {
				t.Fatalf("it found only %+v", d.Findings)
			}
			for _, word := range c.says {
				if !strings.Contains(of[0].Note, word) {
					t.Errorf("it says %q, and not %q", of[0].Note, word)
				}
			}
			if strings.Contains(of[0].Note, "canary") || strings.Contains(of[0].Note, "perch-doctor-") {
				t.Errorf("it says %q", of[0].Note)
			}
		})
	}
}

// answers serves a status on the socket in the data directory, as a running appliance does.
func (d *Examination) answers(t *testing.T, status string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, status) }))
	l := must.Value(net.Listen("unix", filepath.Join(d.Data, "perch.sock")))(t)
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
}

// busy returns an address that is in use.
func busy(t *testing.T) string {
	t.Helper()
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
