// Package board changes the settings of a machine for the programs of the card image: its name,
// the country of its radio, and its networks.
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

// Machine is the machine to change. All changes can be repeated, since the power may fail at
// any moment.
type Machine struct {
	Root string // of its files, usually "/"
	// Run runs a program with stdin as its input.
	Run func(stdin, name string, args ...string) error
}

// runWithin bounds the run of a program.
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

// Valid values of fields that end up in a file or in the arguments of a program.
var (
	hostnames = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)
	countries = regexp.MustCompile(`^[A-Z]{2}$`)
	master    = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	phrases   = regexp.MustCompile(`^[\x20-\x7e]{8,63}$`)
)

// MostSSID bounds the name of a network, in bytes.
const MostSSID = 32

// IsHostname reports whether name is a valid host name.
func IsHostname(name string) bool { return hostnames.MatchString(name) }

// IsCountry reports whether code has the form of ISO 3166-1, two letters.
func IsCountry(code string) bool { return countries.MatchString(code) }

// IsKey reports whether key is a valid key of a network.
func IsKey(key string) bool { return master.MatchString(key) || phrases.MatchString(key) }

// Hostname sets the machine's name.
func (m Machine) Hostname(name string) error {
	return errors.Join(
		m.Write("etc/hostname", 0o644, name+"\n"),
		m.Write("etc/hosts", 0o644, "127.0.0.1\tlocalhost\n127.0.1.1\t"+name+"\n::1\tlocalhost ip6-localhost ip6-loopback\n"),
		m.Run("", "hostname", name),
	)
}

// Country sets the radio's country, from the next start on.
func (m Machine) Country(code string) error {
	return m.Write("etc/modprobe.d/perch-country.conf", 0o644, "options cfg80211 ieee80211_regdom="+code+"\n")
}

// Network is a Wi-Fi network.
type Network struct {
	SSID   string // in bytes
	Key    string // 8 to 63 characters, or 64 hexadecimal digits; empty is an open network
	Hidden bool
}

// Connections is the folder of NetworkManager's connections.
const Connections = "etc/NetworkManager/system-connections"

// Join writes a connection for NetworkManager, with a name and a UUID. Without byItself the
// network is joined only on request. Protected management frames are off: the Wi-Fi of a Pi
// does not join networks that offer them.
func (m Machine) Join(n Network, name, uuid string, byItself bool) error {
	var ssid strings.Builder // in decimal, since it may contain any byte
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

// escaped returns a value for a key file: backslashes are escaped, and spaces at its ends.
func escaped(value string) string {
	value = strings.ReplaceAll(value, `\`, `\\`)
	if trimmed := strings.TrimLeft(value, " "); trimmed != value {
		value = strings.Repeat(`\s`, len(value)-len(trimmed)) + trimmed
	}
	return value
}

// UUID formats sixteen bytes as a UUID.
func UUID(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Write replaces a file atomically.
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

// Replace atomically replaces the file at by the file that made creates.
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

// keepOwner gives a file the owner of the file that it replaces, if there is one.
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
