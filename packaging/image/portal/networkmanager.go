package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"perch/packaging/image/board"
)

// networkManager controls NetworkManager with its command.
type networkManager struct {
	board.Machine
	program string // nmcli
	iface   string // the radio's; may be empty
}

const (
	apName = "perch-access-point"
	// apUUID is the UUID of the access point's connection, which exists only in memory.
	apUUID = "50455243-4850-4900-8000-000000000002"
	// apAddress is also in dnsmasq-shared.d.
	apAddress = "10.42.0.1"
)

// Deadlines of nmcli.
const (
	nmcliWithin  = 20 * time.Second
	raisesWithin = 30 * time.Second
	joinsWithin  = 60 * time.Second
)

// ask runs nmcli in English and returns its output.
func (n *networkManager) ask(ctx context.Context, within time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within+5*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, n.program, append([]string{"--terse", "--colors", "no", "--wait", strconv.Itoa(int(within.Seconds()))}, args...)...)
	c.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	c.WaitDelay = time.Second
	out, err := c.Output()
	if failed, is := errors.AsType[*exec.ExitError](err); is {
		err = fmt.Errorf("%w: %s", errors.Join(err, ctx.Err()), bytes.TrimSpace(failed.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("nmcli %s: %w", args[0], err)
	}
	return string(out), nil
}

// splitFields splits a line of nmcli --terse, with backslash escapes, into its fields.
func splitFields(line string) (fields []string) {
	var one strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			i++
			one.WriteByte(line[i])
		case line[i] == ':':
			fields = append(fields, one.String())
			one.Reset()
		default:
			one.WriteByte(line[i])
		}
	}
	return append(fields, one.String())
}

// networks are the device types that connect to a network.
var networks = []string{"ethernet", "wifi", "gsm", "bond", "vlan", "infiniband"}

// poll reports whether there is a network and the access point. It also finds the radio.
func (n *networkManager) poll(ctx context.Context) (network, raised bool, err error) {
	devices, err := n.ask(ctx, nmcliWithin, "--fields", "DEVICE,TYPE,STATE,CON-UUID", "device", "status")
	if err != nil {
		return false, false, err
	}
	n.iface = ""
	for line := range strings.Lines(devices) {
		f := splitFields(strings.TrimSpace(line))
		if len(f) != 4 || !slices.Contains(networks, f[1]) {
			continue
		}
		if f[1] == "wifi" && n.iface == "" && f[2] != "unmanaged" {
			n.iface = f[0]
		}
		if strings.HasPrefix(f[2], "connected") {
			network, raised = network || f[3] != apUUID, raised || f[3] == apUUID
		}
	}
	return network, raised, nil
}

// hasKnown reports whether there are networks that NetworkManager would join by itself.
func (n *networkManager) hasKnown(ctx context.Context) (known bool, err error) {
	all, err := n.ask(ctx, nmcliWithin, "--fields", "UUID,TYPE,AUTOCONNECT", "connection", "show")
	for line := range strings.Lines(all) {
		f := splitFields(strings.TrimSpace(line))
		known = known || len(f) == 3 && f[0] != apUUID && f[1] == "802-11-wireless" && f[2] == "yes"
	}
	return known, err
}

// scanned is a Wi-Fi network in range.
type scanned struct {
	SSID   string
	Signal int
	Key    bool // it requires a key
	Unfit  bool // this machine cannot join such a network
}

// maxScanned bounds the list of networks.
const maxScanned = 40

// scan returns the networks in range, the strongest first.
func (n *networkManager) scan(ctx context.Context) ([]scanned, error) {
	if _, err := n.ask(ctx, nmcliWithin, "radio", "wifi", "on"); err != nil {
		return nil, err
	}
	out, err := n.ask(ctx, nmcliWithin, "--fields", "SSID-HEX,SIGNAL,SECURITY", "device", "wifi", "list", "ifname", n.iface, "--rescan", "yes")
	if err != nil {
		return nil, err
	}
	strongest := map[string]scanned{}
	for line := range strings.Lines(out) {
		f := splitFields(strings.TrimSpace(line))
		if len(f) != 3 {
			continue
		}
		name, err := hex.DecodeString(f[0])
		signal, err2 := strconv.Atoi(f[1])
		if errors.Join(err, err2) != nil || len(name) == 0 || len(name) > board.MostSSID || bytes.Trim(name, "\x00") == nil {
			continue // it hides its name
		}
		one := scanned{SSID: string(name), Signal: signal, Key: f[2] != ""}
		if one.Key {
			kinds := strings.Fields(f[2])
			one.Unfit = !slices.Contains(kinds, "WPA1") && !slices.Contains(kinds, "WPA2") || slices.Contains(kinds, "802.1X")
		}
		if was, is := strongest[one.SSID]; !is || was.Unfit && !one.Unfit || was.Unfit == one.Unfit && was.Signal < signal {
			strongest[one.SSID] = one
		}
	}
	all := slices.SortedFunc(maps.Values(strongest), func(a, b scanned) int {
		return cmp.Or(b.Signal-a.Signal, strings.Compare(a.SSID, b.SSID))
	})
	return all[:min(len(all), maxScanned)], nil
}

// raise opens an access point without a key, unlike NetworkManager's hotspot.
func (n *networkManager) raise(ctx context.Context, ssid string) error {
	n.lower(ctx)
	if _, err := n.ask(ctx, nmcliWithin, "connection", "add", "save", "no", "type", "wifi", "ifname", n.iface, "con-name", apName,
		"connection.uuid", apUUID, "autoconnect", "no", "ssid", ssid, "802-11-wireless.mode", "ap", "802-11-wireless.band", "bg",
		"802-11-wireless.powersave", "2", "ipv4.method", "shared", "ipv4.addresses", apAddress+"/24", "ipv6.method", "disabled"); err != nil {
		return err
	}
	_, err := n.ask(ctx, raisesWithin, "connection", "up", "uuid", apUUID)
	return err
}

// lower removes the access point, if it exists.
func (n *networkManager) lower(ctx context.Context) {
	_, _ = n.ask(ctx, nmcliWithin, "connection", "delete", "uuid", apUUID) // it may not exist
}

// Reasons why a network was not joined.
var (
	errKey     = errors.New("the key is wrong")
	errUnheard = errors.New("there is no such network")
	errAddress = errors.New("the network gives no address")
	errJoin    = errors.New("the network could not be joined")
)

// prefix returns the beginning of the names of connections made here, followed by what is
// specific to the network.
func prefix(ssid string) string {
	sum := sha256.Sum256([]byte(ssid))
	return "perch-" + hex.EncodeToString(sum[:8]) + "-"
}

// join joins a network and stores it. Other networks, even of the same name, are forgotten only
// after that: a stranger may have typed a key.
func (n *networkManager) join(ctx context.Context, network board.Network) error {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	uuid := board.UUID(random)
	name := prefix(network.SSID) + hex.EncodeToString(random[:4])
	file := n.file(name)
	if err := n.Join(network, name, uuid, false); err != nil {
		return fmt.Errorf("%w: %w", errJoin, err)
	}
	_, err := n.ask(ctx, nmcliWithin, "connection", "load", file)
	if err == nil {
		_, err = n.ask(ctx, joinsWithin, "connection", "up", "uuid", uuid, "ifname", n.iface)
	}
	if err == nil {
		_, err = n.ask(ctx, nmcliWithin, "connection", "modify", "uuid", uuid, "connection.autoconnect", "yes")
	}
	if err != nil {
		n.forget(ctx, file)
		return joinError(err)
	}
	for _, other := range n.ownFiles(prefix(network.SSID)) {
		if other != file {
			n.forget(ctx, other)
		}
	}
	return nil
}

// joinError returns an error with the reason why nmcli has not joined a network, if known.
func joinError(err error) error {
	text := err.Error()
	for _, known := range []struct {
		words string
		why   error
	}{
		{"Secrets were required", errKey}, {"802.1X supplicant", errKey},
		{"network could not be found", errUnheard}, {"IP configuration", errAddress},
	} {
		if strings.Contains(text, known.words) {
			return fmt.Errorf("%w: %w", known.why, err)
		}
	}
	return fmt.Errorf("%w: %w", errJoin, err)
}

// file returns the path of a connection's file.
func (n *networkManager) file(name string) string {
	return filepath.Join(n.Root, board.Connections, name+".nmconnection")
}

// ownFiles returns the files of connections made here with that beginning of their names.
func (n *networkManager) ownFiles(beginning string) []string {
	all, _ := filepath.Glob(n.file(beginning + "*")) // the pattern is valid
	return all
}

// forget removes a connection by its file.
func (n *networkManager) forget(ctx context.Context, file string) {
	if err := os.Remove(file); err == nil || errors.Is(err, fs.ErrNotExist) {
		_, _ = n.ask(ctx, nmcliWithin, "connection", "reload") // otherwise it is gone after the next start
	}
}

// clean removes what an earlier run left after a power failure: its access point, and
// networks that it was about to try.
func (n *networkManager) clean(ctx context.Context) {
	n.lower(ctx)
	for _, file := range n.ownFiles("perch-") {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "\nautoconnect=false\n") {
			n.forget(ctx, file)
		}
	}
}

// country sets the radio's country until the next start.
func (n *networkManager) country(code string) error { return n.Run("", "iw", "reg", "set", code) }

// suffix distinguishes this machine's access point from others: the end of its radio's
// permanent address. During a scan NetworkManager uses random ones.
func (n *networkManager) suffix() string {
	for _, file := range []string{filepath.Join("sys/class/net", n.iface, "phy80211/macaddress"), "etc/machine-id"} {
		text, err := os.ReadFile(filepath.Join(n.Root, file))
		digits := strings.ToUpper(strings.ReplaceAll(strings.TrimSpace(string(text)), ":", ""))
		if err == nil && len(digits) >= 4 {
			return digits[len(digits)-4:]
		}
	}
	return "0000"
}

// there reports whether the last poll found a radio.
func (n *networkManager) there() bool { return n.iface != "" }
