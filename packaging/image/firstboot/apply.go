package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// machine is what a preseed is applied to. Whatever it does may be done again: power may
// fail at any moment, and then all of it is.
type machine struct {
	root string // of its files; "/"
	// run runs a program of the machine, which reads stdin.
	run func(stdin, name string, args ...string) error
}

// runWithin bounds one program.
const runWithin = 2 * time.Minute

// runProgram runs a program of this machine.
func runProgram(stdin, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), runWithin)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Stdin = strings.NewReader(stdin)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// apply makes the machine what was chosen. It does everything that it can, and returns
// what failed.
func (m machine) apply(p *preseed) error {
	return errors.Join(m.hostname(p.System.Hostname), m.user(p), m.ssh(p), m.wlan(p), m.locale(p))
}

func (m machine) hostname(name string) error {
	if name == "" {
		return nil
	}
	return errors.Join(
		m.write("etc/hostname", 0o644, name+"\n"),
		m.write("etc/hosts", 0o644, "127.0.0.1\tlocalhost\n127.0.1.1\t"+name+"\n::1\tlocalhost ip6-localhost ip6-loopback\n"),
		m.run("", "hostname", name),
		m.setting("name", name),
	)
}

// setting sets a key of Perch's configuration, unless its owner has.
func (m machine) setting(key, value string) error {
	const file = "etc/perch/perch.yaml"
	text, err := os.ReadFile(filepath.Join(m.root, file))
	if err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(m.root, file))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, key+":") }) {
		return nil
	}
	return m.write(file, info.Mode().Perm(), strings.TrimRight(string(text), "\n")+"\n"+key+": "+strconv.Quote(value)+"\n")
}

func (m machine) user(p *preseed) error {
	name := p.User.Name
	if name == "" {
		return nil
	}
	var failed []error
	if m.run("", "id", name) != nil {
		failed = append(failed, m.run("", "useradd", "--create-home", "--shell", "/bin/bash", name))
	}
	for _, group := range p.User.Groups {
		failed = append(failed, m.run("", "usermod", "--append", "--groups", group, name))
	}
	if p.User.Password != "" {
		set := []string{"--encrypted"}
		if !p.User.Encrypted {
			set = nil
		}
		failed = append(failed, m.run(name+":"+p.User.Password+"\n", "chpasswd", set...))
	}
	if p.User.Passwordless {
		failed = append(failed, m.write("etc/sudoers.d/010_"+name, 0o440, name+" ALL=(ALL) NOPASSWD: ALL\n"))
	}
	if len(p.SSH.Keys) > 0 {
		var all strings.Builder
		for _, key := range p.SSH.Keys {
			all.WriteString(strings.TrimSpace(key) + "\n")
		}
		home := "home/" + name
		failed = append(failed, m.write(home+"/.ssh/authorized_keys", 0o600, all.String()), m.chmod(home+"/.ssh", 0o700),
			m.run("", "chown", "-R", name+":", "/"+home+"/.ssh"))
	}
	return errors.Join(failed...)
}

// ssh is off unless somebody has asked for it.
func (m machine) ssh(p *preseed) error {
	if !p.SSH.Enabled {
		return nil
	}
	answer := "no"
	if p.SSH.Password {
		answer = "yes"
	}
	return errors.Join(
		m.write("etc/ssh/sshd_config.d/perch.conf", 0o644, "PermitRootLogin no\nPasswordAuthentication "+answer+"\n"),
		m.run("", "systemctl", "enable", "ssh.service"),
		m.run("", "systemctl", "start", "--no-block", "ssh.service"), // this boot's units are chosen already
	)
}

// wlan leaves a connection for NetworkManager. Protected management frames are off: the
// Wi-Fi of a Pi does not join networks that offer them.
func (m machine) wlan(p *preseed) error {
	var failed []error
	if p.WLAN.Country != "" {
		failed = append(failed, m.write("etc/modprobe.d/perch-country.conf", 0o644, "options cfg80211 ieee80211_regdom="+p.WLAN.Country+"\n"))
	}
	ssid, err := p.ssid()
	if err != nil || ssid == "" {
		return errors.Join(append(failed, err)...)
	}
	var name strings.Builder // its bytes in decimal: a name may hold anything
	for _, b := range []byte(ssid) {
		fmt.Fprintf(&name, "%d;", b)
	}
	id := sha256.Sum256([]byte("wlan " + ssid))
	var text strings.Builder
	fmt.Fprintf(&text, "[connection]\nid=preseed\nuuid=%x-%x-%x-%x-%x\n", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	text.WriteString("type=wifi\nautoconnect-retries=0\n\n")
	fmt.Fprintf(&text, "[wifi]\nmode=infrastructure\nssid=%s\nhidden=%t\n\n", name.String(), p.WLAN.Hidden)
	if p.WLAN.Password != "" {
		fmt.Fprintf(&text, "[wifi-security]\nkey-mgmt=wpa-psk\npmf=1\npsk=%s\n\n", escaped(p.WLAN.Password))
	}
	text.WriteString("[ipv4]\nmethod=auto\n\n[ipv6]\nmethod=auto\n")
	return errors.Join(append(failed, m.write("etc/NetworkManager/system-connections/preseed.nmconnection", 0o600, text.String()))...)
}

// escaped is a value of a key file, in which a backslash begins an escape and spaces at
// its ends would be lost.
func escaped(value string) string {
	value = strings.ReplaceAll(value, `\`, `\\`)
	if trimmed := strings.TrimLeft(value, " "); trimmed != value {
		value = strings.Repeat(`\s`, len(value)-len(trimmed)) + trimmed
	}
	return value
}

func (m machine) locale(p *preseed) error {
	var failed []error
	if zone := p.Locale.Timezone; zone != "" {
		if _, err := os.Stat(filepath.Join(m.root, "usr/share/zoneinfo", zone)); err != nil {
			failed = append(failed, fmt.Errorf("there is no time zone %s", zone))
		} else {
			at := filepath.Join(m.root, "etc/localtime")
			failed = append(failed, replace(at, func(fresh string) error { return os.Symlink("/usr/share/zoneinfo/"+zone, fresh) }),
				m.write("etc/timezone", 0o644, zone+"\n"))
		}
	}
	if p.Locale.Keymap != "" {
		failed = append(failed, m.write("etc/default/keyboard", 0o644, "XKBMODEL=pc105\nXKBLAYOUT="+p.Locale.Keymap+"\nXKBVARIANT=\nXKBOPTIONS=\n"))
	}
	return errors.Join(failed...)
}

// write replaces a file at once, so that power that fails leaves the one before or this.
func (m machine) write(file string, mode fs.FileMode, text string) error {
	at := filepath.Join(m.root, file)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return replace(at, func(fresh string) error {
		f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Chmod(mode), keepOwner(f, at), f.Sync(), f.Close())
	})
}

func (m machine) chmod(file string, mode fs.FileMode) error {
	return os.Chmod(filepath.Join(m.root, file), mode)
}

// replace puts what made has made beside a file in its place.
func replace(at string, made func(fresh string) error) error {
	fresh := at + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := made(fresh); err != nil {
		return err
	}
	return os.Rename(fresh, at)
}

// keepOwner gives a file the owner of the one that it replaces, where there is one.
func keepOwner(f *os.File, at string) error {
	info, err := os.Stat(at)
	if err != nil {
		return nil // it is new
	}
	if owner, is := info.Sys().(*syscall.Stat_t); is {
		return f.Chown(int(owner.Uid), int(owner.Gid))
	}
	return nil
}
