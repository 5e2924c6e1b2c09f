package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"perch/packaging/image/board"
)

// machine is what a preseed is applied to.
type machine struct{ board.Machine }

// apply applies the preseed. It applies as much as possible, and returns all errors.
func (m machine) apply(p *preseed) error {
	return errors.Join(m.hostname(p.System.Hostname), m.user(p), m.ssh(p), m.wlan(p), m.locale(p))
}

func (m machine) hostname(name string) error {
	if name == "" {
		return nil
	}
	return errors.Join(m.Hostname(name), m.setting("name", name))
}

// setting sets a key of Perch's configuration, unless its owner has set it.
func (m machine) setting(key, value string) error {
	const file = "etc/perch/perch.yaml"
	text, err := os.ReadFile(filepath.Join(m.Root, file))
	if err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(m.Root, file))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, key+":") }) {
		return nil
	}
	return m.Write(file, info.Mode().Perm(), strings.TrimRight(string(text), "\n")+"\n"+key+": "+strconv.Quote(value)+"\n")
}

func (m machine) user(p *preseed) error {
	name := p.User.Name
	if name == "" {
		return nil
	}
	var failed []error
	if m.Run("", "id", name) != nil {
		failed = append(failed, m.Run("", "useradd", "--create-home", "--shell", "/bin/bash", name))
	}
	for _, group := range p.User.Groups {
		failed = append(failed, m.Run("", "usermod", "--append", "--groups", group, name))
	}
	if p.User.Password != "" {
		set := []string{"--encrypted"}
		if !p.User.Encrypted {
			set = nil
		}
		failed = append(failed, m.Run(name+":"+p.User.Password+"\n", "chpasswd", set...))
	}
	if p.User.Passwordless {
		failed = append(failed, m.Write("etc/sudoers.d/010_"+name, 0o440, name+" ALL=(ALL) NOPASSWD: ALL\n"))
	}
	if len(p.SSH.Keys) > 0 {
		var all strings.Builder
		for _, key := range p.SSH.Keys {
			all.WriteString(strings.TrimSpace(key) + "\n")
		}
		home := "home/" + name
		failed = append(failed, m.Write(home+"/.ssh/authorized_keys", 0o600, all.String()), m.chmod(home+"/.ssh", 0o700),
			m.Run("", "chown", "-R", name+":", "/"+home+"/.ssh"))
	}
	return errors.Join(failed...)
}

// ssh is off unless it was requested.
func (m machine) ssh(p *preseed) error {
	if !p.SSH.Enabled {
		return nil
	}
	answer := "no"
	if p.SSH.Password {
		answer = "yes"
	}
	return errors.Join(
		m.Write("etc/ssh/sshd_config.d/perch.conf", 0o644, "PermitRootLogin no\nPasswordAuthentication "+answer+"\n"),
		m.Run("", "systemctl", "enable", "ssh.service"),
		m.Run("", "systemctl", "start", "--no-block", "ssh.service"), // this boot's units are already chosen
	)
}

func (m machine) wlan(p *preseed) error {
	var failed []error
	if p.WLAN.Country != "" {
		failed = append(failed, m.Country(p.WLAN.Country))
	}
	ssid, err := p.ssid()
	if err != nil || ssid == "" {
		return errors.Join(append(failed, err)...)
	}
	id := sha256.Sum256([]byte("wlan " + ssid))
	network := board.Network{SSID: ssid, Key: p.WLAN.Password, Hidden: p.WLAN.Hidden}
	return errors.Join(append(failed, m.Join(network, "preseed", board.UUID([16]byte(id[:16])), true))...)
}

func (m machine) locale(p *preseed) error {
	var failed []error
	if zone := p.Locale.Timezone; zone != "" {
		if _, err := os.Stat(filepath.Join(m.Root, "usr/share/zoneinfo", zone)); err != nil {
			failed = append(failed, fmt.Errorf("there is no time zone %s", zone))
		} else {
			at := filepath.Join(m.Root, "etc/localtime")
			failed = append(failed, board.Replace(at, func(fresh string) error { return os.Symlink("/usr/share/zoneinfo/"+zone, fresh) }),
				m.Write("etc/timezone", 0o644, zone+"\n"))
		}
	}
	if p.Locale.Keymap != "" {
		failed = append(failed, m.Write("etc/default/keyboard", 0o644, "XKBMODEL=pc105\nXKBLAYOUT="+p.Locale.Keymap+"\nXKBVARIANT=\nXKBOPTIONS=\n"))
	}
	return errors.Join(failed...)
}

func (m machine) chmod(file string, mode fs.FileMode) error {
	return os.Chmod(filepath.Join(m.Root, file), mode)
}
