// Package board changes the settings of a machine that runs Perch's SD card image: the name of the
// machine, the country of its radio, and its networks. The commands perch-firstboot and perch-portal
// use it.
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

// Machine is the machine to change. If the power fails during a call of a method, the method can be
// called again at the next start.
type Machine struct {
	Root string // root of the machine's files, usually "/"
	// Run runs a program with stdin as its standard input, usually RunProgram.
	Run func(stdin, name string, args ...string) error
}

// programTimeout is the longest time that RunProgram lets a program run.
const programTimeout = 2 * time.Minute

// RunProgram runs a program of this machine. An error contains the output of the program.
func RunProgram(stdin, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Stdin = strings.NewReader(stdin)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// Patterns of valid values. The values end up in files and in the arguments of programs.
var (
	hostnames = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)
	countries = regexp.MustCompile(`^[A-Z]{2}$`)
	masterKey = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	phrase    = regexp.MustCompile(`^[\x20-\x7e]{8,63}$`)
)

// MaxSSID is the maximum length of a network's name in bytes.
const MaxSSID = 32

// IsHostname reports whether name is a valid host name.
func IsHostname(name string) bool { return hostnames.MatchString(name) }

// IsCountry reports whether code has the form of a country code of ISO 3166-1: two capital
// letters.
func IsCountry(code string) bool { return countries.MatchString(code) }

// IsKey reports whether key is a valid key of a Wi-Fi network.
func IsKey(key string) bool { return masterKey.MatchString(key) || phrase.MatchString(key) }

// SetHostname sets the machine's host name.
func (m Machine) SetHostname(name string) error {
	return errors.Join(
		m.Write("etc/hostname", 0o644, name+"\n"),
		m.Write("etc/hosts", 0o644, "127.0.0.1\tlocalhost\n127.0.1.1\t"+name+"\n::1\tlocalhost ip6-localhost ip6-loopback\n"),
		m.Run("", "hostname", name),
	)
}

// SetCountry sets the radio's country. The change takes effect at the next start of the machine.
func (m Machine) SetCountry(code string) error {
	return m.Write("etc/modprobe.d/perch-country.conf", 0o644, "options cfg80211 ieee80211_regdom="+code+"\n")
}

// Network is a Wi-Fi network.
type Network struct {
	SSID   string // any bytes, not necessarily UTF-8
	Key    string // 8 to 63 characters, or 64 hexadecimal digits; empty is an open network
	Hidden bool
}

// Connections is the folder with NetworkManager's connections, relative to Machine.Root.
const Connections = "etc/NetworkManager/system-connections"

// WriteConnection writes the file of a NetworkManager connection. If autoconnect is false,
// NetworkManager joins the network only on request. Protected management frames (IEEE 802.11w) are
// off, because the Wi-Fi of a Raspberry Pi does not join networks that offer these frames.
func (m Machine) WriteConnection(n Network, name, uuid string, autoconnect bool) error {
	var ssid strings.Builder // decimal bytes, since the SSID may contain any byte
	for _, b := range []byte(n.SSID) {
		fmt.Fprintf(&ssid, "%d;", b)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "[connection]\nid=%s\nuuid=%s\n", name, uuid)
	text.WriteString("type=wifi\nautoconnect-retries=0\n")
	if !autoconnect {
		text.WriteString("autoconnect=false\n")
	}
	fmt.Fprintf(&text, "\n[wifi]\nmode=infrastructure\nssid=%s\nhidden=%t\n\n", ssid.String(), n.Hidden)
	if n.Key != "" {
		fmt.Fprintf(&text, "[wifi-security]\nkey-mgmt=wpa-psk\npmf=1\npsk=%s\n\n", escapeValue(n.Key))
	}
	text.WriteString("[ipv4]\nmethod=auto\n\n[ipv6]\nmethod=auto\n")
	return m.Write(filepath.Join(Connections, name+".nmconnection"), 0o600, text.String())
}

// escapeValue escapes the backslashes and the leading spaces in a value for a file of NetworkManager.
func escapeValue(value string) string {
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

// Write atomically replaces the content of a file. The path is relative to m.Root.
func (m Machine) Write(file string, mode fs.FileMode, text string) error {
	path := filepath.Join(m.Root, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return Replace(path, func(newPath string) error {
		f, err := os.OpenFile(newPath, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Chmod(mode), keepOwner(f, path), f.Sync(), f.Close())
	})
}

// Replace atomically replaces the file at path by the file that create creates at newPath, in the
// same folder, and syncs the folder.
func Replace(path string, create func(newPath string) error) error {
	newPath := path + ".new"
	if err := os.Remove(newPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := create(newPath); err != nil {
		return err
	}
	if err := os.Rename(newPath, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// keepOwner gives f the owner of the existing file at path, if there is one.
func keepOwner(f *os.File, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // there is no such file
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return f.Chown(int(stat.Uid), int(stat.Gid))
	}
	return nil
}
