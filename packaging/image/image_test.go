// Package image_test boots the SD card image on an emulated 64-bit ARM machine, with the kernel and the initrd of
// its first partition. make test-image runs the tests, which take an hour on two cores. They are skipped unless
// PERCH_IMAGE names the image.
package image_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/must"
)

const (
	firstPartition = "8192"  // number of the first sector
	cardSize       = 8 << 30 // bytes
	// bootsWithin is longer than an emulated machine takes to boot on a busy host.
	bootsWithin = 15 * time.Minute
)

// card is a file with the content of a card to which the image was written.
type card struct {
	t    *testing.T
	file string
	dir  string
	key  string // file of the key for SSH
}

// newCard writes the image to a card, with a preseed unless preseed is empty.
func newCard(t *testing.T, preseed string) *card {
	t.Helper()
	image := os.Getenv("PERCH_IMAGE")
	if image == "" {
		t.Skip("PERCH_IMAGE names no image; make test-image makes one")
	}
	c := &card{t: t, dir: t.TempDir()}
	c.file, c.key = filepath.Join(c.dir, "card"), filepath.Join(c.dir, "key")
	c.do("cp", "--sparse=always", image, c.file)
	must.Succeed(t, os.Truncate(c.file, cardSize))
	for _, file := range []string{"vmlinuz", "initrd.img"} {
		c.do("sh", "-c", `mcopy -n -i "$1@@$(($2 * 512))" "::$(mdir -b -i "$1@@$(($2 * 512))" :: | grep -o "`+file+`[^ ]*" | tail -n 1)" "$3"`,
			"sh", c.file, firstPartition, filepath.Join(c.dir, file))
	}
	c.do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", c.key)
	if preseed != "" {
		public := must.Value(os.ReadFile(c.key + ".pub"))(t)
		c.put("rpi-preseed.toml", strings.ReplaceAll(preseed, "KEY", strings.TrimSpace(string(public))))
	}
	return c
}

// do runs a program of this machine and returns its output.
func (c *card) do(name string, args ...string) string {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), name, args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// put writes a file to the first partition.
func (c *card) put(file, text string) {
	c.t.Helper()
	at := filepath.Join(c.dir, file)
	must.Succeed(c.t, os.WriteFile(at, []byte(text), 0o644))
	c.do("mcopy", "-o", "-i", c.file+"@@4M", at, "::"+file)
}

// get returns the content of a file on the first partition, or "" if there is no such file.
func (c *card) get(file string) string {
	out, err := exec.CommandContext(c.t.Context(), "mtype", "-i", c.file+"@@4M", "::"+file).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// machine is an emulated machine that boots from a card.
type machine struct {
	*card
	qemu    *exec.Cmd
	off     chan struct{} // closed when the machine is off
	console bytes.Buffer
	began   time.Time
	web     string // port on this machine that is forwarded to Perch
	ssh     string // port on this machine that is forwarded to SSH
}

func freePort(t *testing.T) string {
	t.Helper()
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// boots switches on a machine with the card, and with a network that has no connection to the outside.
func (c *card) boots() *machine {
	c.t.Helper()
	return c.bootsFrom("-drive", "file="+c.file+",format=raw,if=virtio,cache=writeback")
}

// bootsFrom is like boots, with the options of qemu for the disk.
func (c *card) bootsFrom(disk ...string) *machine {
	c.t.Helper()
	m := &machine{card: c, web: freePort(c.t), ssh: freePort(c.t), began: time.Now()}
	m.qemu = exec.Command("qemu-system-aarch64", append(disk,
		"-M", "virt", "-cpu", "cortex-a72", "-smp", "2", "-m", "2048", "-nographic", "-no-reboot",
		"-kernel", filepath.Join(c.dir, "vmlinuz"), "-initrd", filepath.Join(c.dir, "initrd.img"),
		"-append", "console=ttyAMA0 root=LABEL=PERCHROOT rootwait fsck.repair=yes",
		"-netdev", "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:"+m.web+"-:8003,hostfwd=tcp:127.0.0.1:"+m.ssh+"-:22",
		"-device", "virtio-net-pci,netdev=net,romfile=")...)
	m.qemu.Stdout, m.qemu.Stderr = &m.console, &m.console
	must.Succeed(c.t, m.qemu.Start())
	m.off = make(chan struct{})
	go func() {
		defer close(m.off)
		_ = m.qemu.Wait()
	}()
	c.t.Cleanup(m.cut)
	return m
}

// cut cuts the power.
func (m *machine) cut() {
	if m.qemu != nil {
		_ = m.qemu.Process.Kill()
		<-m.off
		m.qemu = nil
		if at := os.Getenv("PERCH_CONSOLE"); at != "" {
			_ = os.WriteFile(filepath.Join(at, strings.ReplaceAll(m.t.Name(), "/", "-")+".log"), m.console.Bytes(), 0o644)
		}
	}
}

// ready waits until Perch responds, and returns the time since the machine was switched on.
func (m *machine) ready() time.Duration {
	m.t.Helper()
	for time.Since(m.began) < bootsWithin {
		ctx, cancel := context.WithTimeout(m.t.Context(), 5*time.Second)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+m.web+"/health", nil)
		must.Succeed(m.t, err)
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if cancel(); strings.Contains(string(text), `"ok":true`) {
				return time.Since(m.began)
			}
		}
		cancel()
		select {
		case <-time.After(time.Second):
		case <-m.off:
			m.t.Fatalf("it is off: %s", m.console.Bytes()[max(0, m.console.Len()-2000):])
		}
	}
	m.t.Fatalf("it is not ready after %s", bootsWithin)
	return 0
}

// says runs a command on the machine as the user of the preseed, and returns the output.
func (m *machine) says(command string) (string, error) {
	c := exec.CommandContext(m.t.Context(), "ssh", "-q", "-i", m.key, "-p", m.ssh,
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes",
		"-o", "ConnectTimeout=30", "ann@127.0.0.1", command)
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// wants runs commands on the machine. all maps each command to a regular expression for its output. All commands
// run in one session, because a login takes seconds. A command that fails is run again, because its result may
// need longer than the start of Perch.
func (m *machine) wants(all map[string]string) {
	m.t.Helper()
	left := slices.Sorted(maps.Keys(all))
	for try := 0; len(left) > 0; try++ {
		var script strings.Builder
		for _, command := range left {
			fmt.Fprintf(&script, "(\n%s\n) 2>&1; printf '\\001%%d\\001' $?\n", command)
		}
		out, err := m.says(script.String())
		answers := strings.Split(out, "\x01") // output and status of each command
		var failed []string
		for i, command := range left {
			if 2*i+1 >= len(answers) || answers[2*i+1] != "0" {
				failed = append(failed, command)
			} else if said := strings.TrimSpace(answers[2*i]); !regexp.MustCompile("(?s)^(" + all[command] + ")$").MatchString(said) {
				m.t.Errorf("%s says %q, want %s", command, said, all[command])
			}
		}
		if left = failed; len(left) > 0 && try == 9 {
			m.t.Errorf("these fail (%v):\n%s\n%s", err, strings.Join(left, "\n"), out)
			return
		}
		if len(left) > 0 {
			time.Sleep(5 * time.Second)
		}
	}
}

const everything = `config_version = "1.0"
[system]
hostname = "kitchen"
[user]
name = "ann"
groups = ["sudo"]
passwordless_sudo = true
[ssh]
enabled = true
authorized_keys = ["KEY"]
[wlan]
ssid = "Home"
password = "a good password"
country = "DE"
[locale]
keymap = "de"
timezone = "Europe/Berlin"
`

// chosen returns commands and their expected outputs, for wants, on a machine with the preseed everything.
func chosen() map[string]string {
	return map[string]string{
		"hostname":                "kitchen",
		"readlink /etc/localtime": ".*Europe/Berlin",
		"sudo cat /etc/perch/perch.yaml | grep name:":                             `name: "kitchen"`,
		"sudo cat /etc/NetworkManager/system-connections/preseed.nmconnection":    ".*72;111;109;101;.*",
		"systemctl is-active perch ssh NetworkManager":                            "active\nactive\nactive",
		"systemctl list-units --state=failed --no-legend --plain | cut -d' ' -f1": "",
		`sudo cat /boot/firmware/perch-page.txt | tr -d '\r'`: `The page is at http://kitchen\.local:8003/
It asks for this admin token: [0-9a-zA-Z_-]{20,}`,
		"df --output=size -BG / | tail -1":                               " *[678]G",
		"sudo ls /boot/firmware | grep -c -e preseed -e problem || true": "0",
		"sudo cat /etc/shadow | cut -d: -f2 | grep -v '^[!*]' || true":   "", // nobody has a password
		"sudo swapon --noheadings --show=NAME":                           "/dev/zram0",
		"sudo journalctl --header | grep -o /run/log | head -1":          "/run/log",
	}
}

// TestFirstBoot boots a card with all settings in its preseed. The machine must use the whole card and apply the
// settings, and a robot must be able to talk with Perch.
func TestFirstBoot(t *testing.T) {
	c := newCard(t, everything)
	m := c.boots()
	took := m.ready()
	m.wants(chosen())
	m.wants(kept())
	robot := exec.CommandContext(t.Context(), "go", "run", "perch/firmware-tools", "robot", "--ota", "http://127.0.0.1:"+m.web+"/xiaozhi/ota/",
		"--mac", "02:00:00:00:00:01", "--say", "what time is it")
	out, err := robot.CombinedOutput()
	if err != nil {
		t.Errorf("the robot: %v\n%s", err, out)
	}
	free, _ := m.says("free -m | awk '/^Mem/ {print $3}'")
	perch, _ := m.says("grep -h VmRSS /proc/$(pgrep -o -x perch)/status | tr -s '\\t ' ' '")
	kernel, _ := m.says("uname -r")
	t.Logf("ready %s after it was switched on, emulated, Linux %s; %s MB in use, perch %s", took.Round(time.Second), kernel, free, perch)
	m.cut()
	again := c.boots()
	t.Logf("ready %s after it was switched on again", again.ready().Round(time.Second))
	again.wants(chosen())
}

// kept returns commands and their expected outputs, for wants, about what makes a machine run for years without
// maintenance.
func kept() map[string]string {
	return map[string]string{
		"findmnt -no OPTIONS /":                                         ".*noatime.*",
		"systemctl show -p RuntimeWatchdogUSec --value":                 "14s",
		"systemctl is-enabled systemd-timesyncd unattended-upgrades":    "enabled\nenabled",
		"systemctl is-active apt-daily.timer apt-daily-upgrade.timer":   "active\nactive",
		"apt-config dump Unattended-Upgrade::Origins-Pattern":           ".*label=Debian-Security.*codename=trixie-backports.*",
		"apt-cache policy | grep -c trixie-backports || true":           "0", // the image contains no lists of packages
		"grep -rhoE 'trixie[a-z-]*' /etc/apt/sources.list.d/ | sort -u": ".*trixie-backports.*",
		"sudo sshd -T | grep -e ^passwordauth -e ^permitroot":           "permitrootlogin no\npasswordauthentication no",
		"sudo journalctl --disk-usage | grep -oE '[0-9.]+[KM]'":         "([0-9.]+K|[12]?[0-9.]{1,4}M|3[0-2][0-9.]*M)",
		"sudo ls /var/lib/systemd/timesync/":                            "clock",
	}
}

// gives copies a file of testdata to the user's home folder on the machine.
func (m *machine) gives(file string) {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	must.Succeed(m.t, err)
	m.wants(map[string]string{"cat >" + file + " <<'END-OF-FILE'\n" + string(text) + "END-OF-FILE\n": ""})
}

// TestAccessPoint checks that a machine without a network opens an access point. A simulated phone joins it, is
// redirected to the page, and submits a wrong key and then the right one. The radios are simulated by the kernel
// module mac80211_hwsim; the other programs are those of the card.
func TestAccessPoint(t *testing.T) {
	const wlan = "[wlan]\nssid = \"Home\"\npassword = \"a good password\"\ncountry = \"DE\"\n"
	c := newCard(t, strings.Replace(everything, wlan, "", 1))
	m := c.boots()
	m.ready()
	m.wants(map[string]string{"systemctl is-active perch-portal; nmcli -t -f TYPE,STATE device | grep -c ^wifi: || true": "active\n0"})
	m.gives("radios.sh")
	m.gives("phone.py")
	if out, err := m.says("sudo sh radios.sh"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	began := time.Now()
	m.wants(map[string]string{"sudo systemctl start perch-portal": ""})
	phone := func(key, want string) {
		t.Helper()
		out, err := m.says("sudo ip netns exec phone python3 phone.py Perch-0000 ssid=Home 'key=" + key + "' country=DE name=attic language=de")
		if err != nil || !regexp.MustCompile("(?s)^"+want+"$").MatchString(out) {
			t.Fatalf("the phone, after %s (%v):\n%s", time.Since(began).Round(time.Second), err, out)
		}
		t.Logf("the phone, after %s:\n%s", time.Since(began).Round(time.Second), out)
	}
	const led = `open\naddress 10\.42\.0\.\d+\nled to http://10\.42\.0\.1/\n`
	phone("a wrong password", led+"hears Home\nanswer 200 Perch now joins Home\\.")
	phone("a good password", led+"says Home was not joined: the password is wrong\\.\n(hears Home\n)?answer 200 Perch now joins Home\\.")
	m.wants(map[string]string{
		"for i in $(seq 60); do ip -4 -o address show wlan0 | grep -o '192[.]168[.]77[.][1-5][0-9]' && exit; sleep 5; done": "192.*",
		"for i in $(seq 60); do [ $(hostname) = attic ] && break; sleep 2; done; hostname":                                  "attic",
		"nmcli -t -f NAME connection show --active | grep -c perch-access-point || true":                                    "0",
		"cat /etc/modprobe.d/perch-country.conf":                                                                            ".*ieee80211_regdom=DE",
		"sudo sh -c 'grep -l autoconnect=false /etc/NetworkManager/system-connections/*' || true":                           "",
		"for i in $(seq 60); do sudo grep -q ^name: /etc/perch/perch.yaml && break; sleep 2; done; " +
			"sudo grep -e ^name: -e ^language: /etc/perch/perch.yaml": "name: \"?attic\"?", // perch refuses the language of the form, de
	})
}

// TestABadPreseed checks that the fault of a preseed is reported in a file on the card, and that Perch runs.
func TestABadPreseed(t *testing.T) {
	c := newCard(t, "[system]\nhostname = \"kitchen\n")
	m := c.boots()
	m.ready()
	m.cut()
	if report := c.get("perch-problem.txt"); !strings.Contains(report, "line 2") {
		t.Errorf("the card says %q", report)
	}
	if text := c.get("rpi-preseed.toml"); !strings.Contains(text, "kitchen") {
		t.Errorf("what was chosen is now %q", text)
	}
}

// TestACardWithoutRoom checks that Perch runs from a card that is only as large as the image.
func TestACardWithoutRoom(t *testing.T) {
	c := newCard(t, everything)
	image := must.Value(os.Stat(os.Getenv("PERCH_IMAGE")))(t)
	must.Succeed(t, os.Truncate(c.file, image.Size()))
	m := c.boots()
	m.ready()
	m.wants(map[string]string{
		"systemctl list-units --state=failed --no-legend --plain | cut -d' ' -f1": "",
		"df --output=avail -BM / | tail -1":                                       " *[1-9][0-9]+M",
	})
}
