// Package board is what the programs of a card's own change on its machine: its name, the
// country of its radio, and the networks that it joins.
package board

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Machine is what is changed. Whatever is done to it may be done again: power may fail at
// any moment.
type Machine struct {
	Root string // of its files; "/"
	// Run runs a program of the machine, which reads stdin.
	Run func(stdin, name string, args ...string) error
}

// runWithin bounds one program.
const runWithin = 2 * time.Minute

// RunProgram runs a program of this machine.
func RunProgram(stdin, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), runWithin)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Stdin = strings.NewReader(stdin)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// What may be in a field. Each ends up in a file or in the arguments of a program.
var (
	hostnames = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)
	countries = regexp.MustCompile(`^[A-Z]{2}$`)
	master    = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	phrases   = regexp.MustCompile(`^[\x20-\x7e]{8,63}$`)
)

// MostSSID bounds the name of a network, in bytes.
const MostSSID = 32

// IsHostname reports whether a machine may have a name.
func IsHostname(name string) bool { return hostnames.MatchString(name) }

// IsCountry reports whether a country is written as ISO 3166-1 has it, in two letters.
func IsCountry(code string) bool { return countries.MatchString(code) }

// IsKey reports whether a network may have a key.
func IsKey(key string) bool { return master.MatchString(key) || phrases.MatchString(key) }

// Hostname gives the machine a name.
func (m Machine) Hostname(name string) error {
	return errors.Join(
		m.Write("etc/hostname", 0o644, name+"\n"),
		m.Write("etc/hosts", 0o644, "127.0.0.1\tlocalhost\n127.0.1.1\t"+name+"\n::1\tlocalhost ip6-localhost ip6-loopback\n"),
		m.Run("", "hostname", name),
	)
}

// Country tells the radio where it is, from the next start on.
func (m Machine) Country(code string) error {
	return m.Write("etc/modprobe.d/perch-country.conf", 0o644, "options cfg80211 ieee80211_regdom="+code+"\n")
}

// Network is a network without wires.
type Network struct {
	SSID   string // its bytes
	Key    string // 8 to 63 characters, or 64 hexadecimal digits; empty is an open network
	Hidden bool
}

// Connections is the folder of NetworkManager's connections.
const Connections = "etc/NetworkManager/system-connections"

// Join leaves a connection for NetworkManager, with a name and a UUID. One that is not
// by itself is joined where somebody asks for it. Protected management frames are off:
// the Wi-Fi of a Pi does not join networks that offer them.
func (m Machine) Join(n Network, name, uuid string, byItself bool) error {
	var ssid strings.Builder // its bytes in decimal: a name may hold anything
	for _, b := range []byte(n.SSID) {
		fmt.Fprintf(&ssid, "%d;", b)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "[connection]\nid=%s\nuuid=%s\n", name, uuid)
	text.WriteString("type=wifi\nautoconnect-retries=0\n")
	if !byItself {
		text.WriteString("autoconnect=false\n")
	}
	fmt.Fprintf(&text, "\n[wifi]\nmode=infrastructure\nssid=%s\nhidden=%t\n\n", ssid.String(), n.Hidden)
	if n.Key != "" {
		fmt.Fprintf(&text, "[wifi-security]\nkey-mgmt=wpa-psk\npmf=1\npsk=%s\n\n", escaped(n.Key))
	}
	text.WriteString("[ipv4]\nmethod=auto\n\n[ipv6]\nmethod=auto\n")
	return m.Write(filepath.Join(Connections, name+".nmconnection"), 0o600, text.String())
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

// UUID is sixteen bytes as a UUID.
func UUID(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Write replaces a file at once, so that power that fails leaves the one before or this.
func (m Machine) Write(file string, mode fs.FileMode, text string) error {
	at := filepath.Join(m.Root, file)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return Replace(at, func(fresh string) error {
		f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Chmod(mode), keepOwner(f, at), f.Sync(), f.Close())
	})
}

// Replace puts what made has made beside a file in its place.
func Replace(at string, made func(fresh string) error) error {
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
