package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"perch/plain"
)

// wifi is this machine's Wi-Fi device, which NetworkManager controls.
type wifi struct {
	device   string // name of the network device
	previous string // UUID of the connection that the device had before; "" if it was not connected
}

const (
	// profile is NetworkManager's name for the connection to a robot's network. The connection is
	// not saved to disk, so that this machine joins its usual network after a loss of power.
	profile = "perch-provision"
	// nmcliTimeout bounds one call of nmcli. It is longer than joinSeconds.
	nmcliTimeout = 45 * time.Second
	// joinSeconds is the time in seconds that nmcli may take to join a network.
	joinSeconds = "30"
)

// nmcli runs NetworkManager's program nmcli and returns its output. The locale is C, because
// callers parse the output.
func nmcli(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, nmcliTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "nmcli", args...)
	command.Env = append(os.Environ(), "LC_ALL=C", "LANGUAGE=C")
	command.WaitDelay = 2 * time.Second
	out, err := command.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "",
			errors.New("--wifi needs NetworkManager's nmcli, which is not installed; join the network Xiaozhi-XXXX by hand, and leave out --wifi")
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return "", fmt.Errorf("nmcli: %s", plain.Line(strings.TrimPrefix(strings.TrimSpace(string(exit.Stderr)), "Error: ")))
	}
	if err != nil {
		return "", fmt.Errorf("nmcli: %s", plain.Line(err.Error()))
	}
	return string(out), nil
}

// findWiFi finds the machine's first usable Wi-Fi device, and the device's current connection.
func findWiFi(ctx context.Context) (*wifi, error) {
	devices, err := nmcli(ctx, "-t", "-e", "no", "-f", "TYPE,STATE,DEVICE", "device", "status")
	if err != nil {
		return nil, err
	}
	w := &wifi{}
	for line := range strings.Lines(devices) {
		f := strings.SplitN(strings.TrimRight(line, "\r\n"), ":", 3)
		if len(f) == 3 && f[0] == "wifi" && f[1] != "unmanaged" && f[1] != "unavailable" {
			w.device = f[2]
			break
		}
	}
	if w.device == "" {
		return nil, errors.New("NetworkManager has no active Wi-Fi device; run nmcli radio wifi on, or use another machine")
	}
	active, err := nmcli(ctx, "-t", "-e", "no", "-f", "UUID,DEVICE", "connection", "show", "--active")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(active) {
		if uuid, device, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && device == w.device {
			w.previous = uuid
		}
	}
	return w, nil
}

// robotNetwork matches the name of the network that a robot opens, which ends with the last
// two bytes of the robot's MAC address.
var robotNetwork = regexp.MustCompile(`^Xiaozhi-[0-9A-Fa-f]{4}$`)

// chooseNetwork returns the name of a robot's network in range: the given name or, without a
// given name, the name of the only such network.
func (w *wifi) chooseNetwork(ctx context.Context, name string) (string, error) {
	out, err := nmcli(ctx, "-t", "-e", "no", "-f", "SSID", "device", "wifi", "list", "ifname", w.device, "--rescan", "yes")
	if err != nil {
		return "", err
	}
	var found []string
	for line := range strings.Lines(out) {
		if ssid := strings.TrimRight(line, "\r\n"); robotNetwork.MatchString(ssid) {
			found = append(found, ssid)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	switch {
	case name != "" && slices.Contains(found, name):
		return name, nil
	case name != "":
		return "", fmt.Errorf("the robot's network %s is not in range; networks of other robots: %s", name, cmp.Or(strings.Join(found, ", "), "none"))
	case len(found) == 0:
		return "", errors.New("no robot nearby is in configuration mode: no network Xiaozhi-XXXX is in range. A robot opens it one minute after it " +
			"failed to join its Wi-Fi")
	case len(found) > 1:
		return "", fmt.Errorf("several robots are in configuration mode; choose one with --ap: %s", strings.Join(found, ", "))
	}
	return found[0], nil
}

// join makes this machine leave its Wi-Fi network and join a robot's network. The robot's network
// does not get the default route, because only the robot can be reached through it.
func (w *wifi) join(ctx context.Context, ssid string) error {
	w.removeProfile(ctx) // a killed run may have left its connection behind
	_, err := nmcli(ctx, "connection", "add", "save", "no", "type", "wifi", "con-name", profile, "ifname", w.device, "autoconnect", "no",
		"ssid", ssid, "ipv4.never-default", "yes", "ipv6.method", "disabled")
	if err == nil {
		_, err = nmcli(ctx, "--wait", joinSeconds, "connection", "up", "id", profile, "ifname", w.device)
	}
	if err != nil {
		return fmt.Errorf("join %s: %w", ssid, err)
	}
	return nil
}

// removeProfile removes the connection to a robot's network, if it exists.
func (w *wifi) removeProfile(ctx context.Context) {
	_, _ = nmcli(ctx, "connection", "delete", "id", profile) // fails if the connection does not exist
}

// restore leaves the robot's network and returns to the machine's previous network, if there was one.
func (w *wifi) restore(ctx context.Context) error {
	w.removeProfile(ctx)
	if w.previous == "" {
		return nil
	}
	if _, err := nmcli(ctx, "--wait", joinSeconds, "connection", "up", "uuid", w.previous); err != nil {
		return fmt.Errorf("this machine did not return to its Wi-Fi: %w; run nmcli connection up uuid %s", err, w.previous)
	}
	return nil
}
