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

// machine is the machine that a preseed is applied to.
type machine struct{ board.Machine }

// apply applies the preseed. It continues after errors, and returns all errors.
func (m machine) apply(p *preseed) error {
	return errors.Join(m.hostname(p.System.Hostname), m.user(p), m.ssh(p), m.wlan(p), m.locale(p))
}

// hostname sets the name of the machine and of Perch.
func (m machine) hostname(name string) error {
	if name == "" {
		return nil
	}
	return errors.Join(m.SetHostname(name), m.setConfigKey("name", name))
}

// setConfigKey sets a key of Perch's configuration, unless the owner has already set that key.
func (m machine) setConfigKey(key, value string) error {
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

// user creates the user that the preseed names, or changes this user.
func (m machine) user(p *preseed) error {
	name := p.User.Name
	if name == "" {
		return nil
	}
	var errs []error
	if m.Run("", "id", name) != nil {
		errs = append(errs, m.Run("", "useradd", "--create-home", "--shell", "/bin/bash", name))
	}
	for _, group := range p.User.Groups {
		errs = append(errs, m.Run("", "usermod", "--append", "--groups", group, name))
	}
	if p.User.Password != "" {
		var args []string
		if p.User.Encrypted {
			args = append(args, "--encrypted")
		}
		errs = append(errs, m.Run(name+":"+p.User.Password+"\n", "chpasswd", args...))
	}
	if p.User.Passwordless {
		errs = append(errs, m.Write("etc/sudoers.d/010_"+name, 0o440, name+" ALL=(ALL) NOPASSWD: ALL\n"))
	}
	if len(p.SSH.Keys) > 0 {
		var keys strings.Builder
		for _, key := range p.SSH.Keys {
			keys.WriteString(strings.TrimSpace(key) + "\n")
		}
		home := "home/" + name
		errs = append(errs, m.Write(home+"/.ssh/authorized_keys", 0o600, keys.String()), m.chmod(home+"/.ssh", 0o700),
			m.Run("", "chown", "-R", name+":", "/"+home+"/.ssh"))
	}
	return errors.Join(errs...)
}

// ssh enables the SSH server if requested. The server is off in the image.
func (m machine) ssh(p *preseed) error {
	if !p.SSH.Enabled {
		return nil
	}
	passwordAuth := "no"
	if p.SSH.Password {
		passwordAuth = "yes"
	}
	return errors.Join(
		m.Write("etc/ssh/sshd_config.d/perch.conf", 0o644, "PermitRootLogin no\nPasswordAuthentication "+passwordAuth+"\n"),
		m.Run("", "systemctl", "enable", "ssh.service"),
		m.Run("", "systemctl", "start", "--no-block", "ssh.service"), // enabling takes effect only at the next boot
	)
}

// wlan sets the country of the radio, and writes the file with which NetworkManager connects to the Wi-Fi.
func (m machine) wlan(p *preseed) error {
	var errs []error
	if p.WLAN.Country != "" {
		errs = append(errs, m.SetCountry(p.WLAN.Country))
	}
	ssid, err := p.ssid()
	if err != nil || ssid == "" {
		return errors.Join(append(errs, err)...)
	}
	id := sha256.Sum256([]byte("wlan " + ssid))
	network := board.Network{SSID: ssid, Key: p.WLAN.Password, Hidden: p.WLAN.Hidden}
	return errors.Join(append(errs, m.WriteConnection(network, "preseed", board.UUID([16]byte(id[:16])), true))...)
}

// locale sets the time zone and the keyboard layout.
func (m machine) locale(p *preseed) error {
	var errs []error
	if zone := p.Locale.Timezone; zone != "" {
		if _, err := os.Stat(filepath.Join(m.Root, "usr/share/zoneinfo", zone)); err != nil {
			errs = append(errs, fmt.Errorf("there is no time zone %s", zone))
		} else {
			localtime := filepath.Join(m.Root, "etc/localtime")
			errs = append(errs, board.Replace(localtime, func(newPath string) error { return os.Symlink("/usr/share/zoneinfo/"+zone, newPath) }),
				m.Write("etc/timezone", 0o644, zone+"\n"))
		}
	}
	if p.Locale.Keymap != "" {
		errs = append(errs, m.Write("etc/default/keyboard", 0o644, "XKBMODEL=pc105\nXKBLAYOUT="+p.Locale.Keymap+"\nXKBVARIANT=\nXKBOPTIONS=\n"))
	}
	return errors.Join(errs...)
}

// chmod sets the permissions of a file. The path is relative to m.Root.
func (m machine) chmod(file string, mode fs.FileMode) error {
	return os.Chmod(filepath.Join(m.Root, file), mode)
}
