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

// networkManager controls NetworkManager with its program nmcli.
type networkManager struct {
	board.Machine
	program string // path or name of nmcli
	iface   string // network interface of the radio; empty if the machine has no radio
}

const (
	// apName is the name of the access point's connection, which exists only in memory.
	apName = "perch-access-point"
	// apUUID is the UUID of the access point's connection.
	apUUID = "50455243-4850-4900-8000-000000000002"
	// apAddress is the machine's address on the access point. The configuration of dnsmasq in
	// dnsmasq-shared.d contains the same address.
	apAddress = "10.42.0.1"
)

// Timeouts of nmcli: for opening the access point, for joining a network, and for anything else.
const (
	raiseTimeout = 30 * time.Second
	joinTimeout  = 60 * time.Second
	nmcliTimeout = 20 * time.Second
)

// call runs nmcli and returns its output. The locale is C, because callers parse the output. nmcli
// stops waiting after timeout; call kills nmcli if it is still running 5 s later.
func (n *networkManager) call(ctx context.Context, timeout time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+5*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, n.program, append([]string{"--terse", "--colors", "no", "--wait", strconv.Itoa(int(timeout.Seconds()))}, args...)...)
	c.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	c.WaitDelay = time.Second
	out, err := c.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", errors.Join(err, ctx.Err()), bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("nmcli %s: %w", args[0], err)
	}
	return string(out), nil
}

// splitFields splits a line of nmcli --terse into its fields, and removes backslash escapes.
func splitFields(line string) (fields []string) {
	var field strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			i++
			field.WriteByte(line[i])
		case line[i] == ':':
			fields = append(fields, field.String())
			field.Reset()
		default:
			field.WriteByte(line[i])
		}
	}
	return append(fields, field.String())
}

// networkTypes are the types of devices that connect to a network.
var networkTypes = []string{"ethernet", "wifi", "gsm", "bond", "vlan", "infiniband"}

// poll reports whether the machine is connected to a network other than the access point, and whether
// the access point is open. It also updates n.iface.
func (n *networkManager) poll(ctx context.Context) (network, raised bool, err error) {
	devices, err := n.call(ctx, nmcliTimeout, "--fields", "DEVICE,TYPE,STATE,CON-UUID", "device", "status")
	if err != nil {
		return false, false, err
	}
	n.iface = ""
	for line := range strings.Lines(devices) {
		f := splitFields(strings.TrimSpace(line))
		if len(f) != 4 || !slices.Contains(networkTypes, f[1]) {
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

// hasSavedNetworks reports whether there are saved Wi-Fi networks that NetworkManager joins
// automatically.
func (n *networkManager) hasSavedNetworks(ctx context.Context) (saved bool, err error) {
	connections, err := n.call(ctx, nmcliTimeout, "--fields", "UUID,TYPE,AUTOCONNECT", "connection", "show")
	for line := range strings.Lines(connections) {
		f := splitFields(strings.TrimSpace(line))
		saved = saved || len(f) == 3 && f[0] != apUUID && f[1] == "802-11-wireless" && f[2] == "yes"
	}
	return saved, err
}

// scanned is a Wi-Fi network in range.
type scanned struct {
	SSID   string
	Signal int  // strength in percent
	Key    bool // the network requires a key
	Unfit  bool // this machine does not support the network's security
}

// maxScanned is the maximum number of networks that scan returns.
const maxScanned = 40

// scan returns the networks in range, the strongest first. Networks with hidden names are left out.
func (n *networkManager) scan(ctx context.Context) ([]scanned, error) {
	if _, err := n.call(ctx, nmcliTimeout, "radio", "wifi", "on"); err != nil {
		return nil, err
	}
	out, err := n.call(ctx, nmcliTimeout, "--fields", "SSID-HEX,SIGNAL,SECURITY", "device", "wifi", "list", "ifname", n.iface, "--rescan", "yes")
	if err != nil {
		return nil, err
	}
	best := map[string]scanned{} // the best access point of each network
	for line := range strings.Lines(out) {
		f := splitFields(strings.TrimSpace(line))
		if len(f) != 3 {
			continue
		}
		name, err := hex.DecodeString(f[0])
		signal, err2 := strconv.Atoi(f[1])
		if errors.Join(err, err2) != nil || len(name) == 0 || len(name) > board.MaxSSID || bytes.Trim(name, "\x00") == nil {
			continue // a network that hides its name, or a line that cannot be parsed
		}
		network := scanned{SSID: string(name), Signal: signal, Key: f[2] != ""}
		if network.Key {
			security := strings.Fields(f[2])
			network.Unfit = !slices.Contains(security, "WPA1") && !slices.Contains(security, "WPA2") || slices.Contains(security, "802.1X")
		}
		old, ok := best[network.SSID]
		if !ok || old.Unfit && !network.Unfit || old.Unfit == network.Unfit && old.Signal < signal {
			best[network.SSID] = network
		}
	}
	sorted := slices.SortedFunc(maps.Values(best), func(a, b scanned) int {
		return cmp.Or(b.Signal-a.Signal, strings.Compare(a.SSID, b.SSID))
	})
	return sorted[:min(len(sorted), maxScanned)], nil
}

// raise opens the access point. It does not use NetworkManager's hotspot, because a hotspot requires a
// key.
func (n *networkManager) raise(ctx context.Context, ssid string) error {
	n.lower(ctx)
	if _, err := n.call(ctx, nmcliTimeout, "connection", "add", "save", "no", "type", "wifi", "ifname", n.iface, "con-name", apName,
		"connection.uuid", apUUID, "autoconnect", "no", "ssid", ssid, "802-11-wireless.mode", "ap", "802-11-wireless.band", "bg",
		"802-11-wireless.powersave", "2", "ipv4.method", "shared", "ipv4.addresses", apAddress+"/24", "ipv6.method", "disabled"); err != nil {
		return err
	}
	_, err := n.call(ctx, raiseTimeout, "connection", "up", "uuid", apUUID)
	return err
}

// lower removes the access point, if it exists.
func (n *networkManager) lower(ctx context.Context) {
	_, _ = n.call(ctx, nmcliTimeout, "connection", "delete", "uuid", apUUID) // fails if the connection does not exist
}

// Reasons why a network was not joined.
var (
	errWrongKey  = errors.New("the key is wrong")
	errNotFound  = errors.New("the network was not found")
	errNoAddress = errors.New("the network assigned no IP address")
	errNotJoined = errors.New("the network could not be joined")
)

// connectionPrefix returns a prefix for NetworkManager's names of connections to a network. All
// connections that this program saves for the network have this prefix.
func connectionPrefix(ssid string) string {
	sum := sha256.Sum256([]byte(ssid))
	return "perch-" + hex.EncodeToString(sum[:8]) + "-"
}

// join joins a network and saves the connection. It removes older connections to a network with the same
// name only after it has joined the network, because a stranger may have submitted the form with a wrong key.
func (n *networkManager) join(ctx context.Context, network board.Network) error {
	var random [16]byte
	_, _ = rand.Read(random[:]) // cannot fail
	uuid := board.UUID(random)
	name := connectionPrefix(network.SSID) + hex.EncodeToString(random[:4])
	file := n.file(name)
	if err := n.WriteConnection(network, name, uuid, false); err != nil {
		return fmt.Errorf("%w: %w", errNotJoined, err)
	}
	_, err := n.call(ctx, nmcliTimeout, "connection", "load", file)
	if err == nil {
		_, err = n.call(ctx, joinTimeout, "connection", "up", "uuid", uuid, "ifname", n.iface)
	}
	if err == nil {
		_, err = n.call(ctx, nmcliTimeout, "connection", "modify", "uuid", uuid, "connection.autoconnect", "yes")
	}
	if err != nil {
		n.removeConnection(ctx, file)
		return joinError(err)
	}
	for _, other := range n.ownConnections(connectionPrefix(network.SSID)) {
		if other != file {
			n.removeConnection(ctx, other)
		}
	}
	return nil
}

// joinError wraps the error of nmcli with the reason why a network was not joined.
func joinError(err error) error {
	text := err.Error()
	for _, known := range []struct {
		message string
		reason  error
	}{
		{"Secrets were required", errWrongKey}, {"802.1X supplicant", errWrongKey},
		{"network could not be found", errNotFound}, {"IP configuration", errNoAddress},
	} {
		if strings.Contains(text, known.message) {
			return fmt.Errorf("%w: %w", known.reason, err)
		}
	}
	return fmt.Errorf("%w: %w", errNotJoined, err)
}

// file returns the path of the file with the connection of the given name.
func (n *networkManager) file(name string) string {
	return filepath.Join(n.Root, board.Connections, name+".nmconnection")
}

// ownConnections returns the files of the connections whose names begin with a prefix. Prefixes of this
// program begin with "perch-".
func (n *networkManager) ownConnections(prefix string) []string {
	files, _ := filepath.Glob(n.file(prefix + "*")) // cannot fail: the pattern is valid
	return files
}

// removeConnection removes a connection and its file.
func (n *networkManager) removeConnection(ctx context.Context, file string) {
	if err := os.Remove(file); err == nil || errors.Is(err, fs.ErrNotExist) {
		_, _ = n.call(ctx, nmcliTimeout, "connection", "reload") // if this fails, NetworkManager forgets the connection at its next start
	}
}

// cleanUp removes what remains of a run that has ended by a power failure: the access point, and
// saved connections to networks that were not joined yet.
func (n *networkManager) cleanUp(ctx context.Context) {
	n.lower(ctx)
	for _, file := range n.ownConnections("perch-") {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "\nautoconnect=false\n") {
			n.removeConnection(ctx, file)
		}
	}
}

// setCountry sets the radio's country until the next start of the machine.
func (n *networkManager) setCountry(code string) error { return n.Run("", "iw", "reg", "set", code) }

// suffix returns four hexadecimal digits that distinguish this machine's access point from others: the end
// of the radio's permanent MAC address, or else of the machine ID, or else "0000". The current MAC
// address is not used, because NetworkManager uses random addresses during a scan.
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

// hasRadio reports whether the latest poll found a radio.
func (n *networkManager) hasRadio() bool { return n.iface != "" }
