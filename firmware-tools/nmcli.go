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

// manager controls NetworkManager with its program nmcli.
type manager struct {
	device string // of Wi-Fi
	before string // UUID of the device's earlier connection; "" if it had none
}

const (
	// profile is the name of the connection to a robot. It is never saved, so
	// that a machine that loses power returns to its own network.
	profile = "perch-provision"
	// nmcliWithin limits one call; a join takes up to 30 s, by its option.
	nmcliWithin = 45 * time.Second
	joinSeconds = "30"
)

// nmcli runs nmcli, in the language C, because its output is parsed.
func nmcli(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, nmcliWithin)
	defer cancel()
	command := exec.CommandContext(ctx, "nmcli", args...)
	command.Env = append(os.Environ(), "LC_ALL=C", "LANGUAGE=C")
	command.WaitDelay = 2 * time.Second
	out, err := command.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "",
			errors.New("--wifi needs NetworkManager's nmcli, which is not here; join the network Xiaozhi-XXXX by hand, and run this without --wifi")
	}
	if failed, is := errors.AsType[*exec.ExitError](err); is && len(failed.Stderr) > 0 {
		return "", fmt.Errorf("nmcli: %s", plain.Line(strings.TrimPrefix(strings.TrimSpace(string(failed.Stderr)), "Error: ")))
	}
	if err != nil {
		return "", fmt.Errorf("nmcli: %s", plain.Line(err.Error()))
	}
	return string(out), nil
}

// findManager finds the machine's Wi-Fi device and its connection.
func findManager(ctx context.Context) (*manager, error) {
	devices, err := nmcli(ctx, "-t", "-e", "no", "-f", "TYPE,STATE,DEVICE", "device", "status")
	if err != nil {
		return nil, err
	}
	m := &manager{}
	for line := range strings.Lines(devices) {
		f := strings.SplitN(strings.TrimRight(line, "\r\n"), ":", 3)
		if len(f) == 3 && f[0] == "wifi" && f[1] != "unmanaged" && f[1] != "unavailable" {
			m.device = f[2]
			break
		}
	}
	if m.device == "" {
		return nil, errors.New("NetworkManager has no Wi-Fi that is on; nmcli radio wifi on, or join the robot's network from another machine")
	}
	active, err := nmcli(ctx, "-t", "-e", "no", "-f", "UUID,DEVICE", "connection", "show", "--active")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(active) {
		if uuid, device, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && device == m.device {
			m.before = uuid
		}
	}
	return m, nil
}

// robotNetwork matches the name of the network that a robot opens, with the last
// two bytes of its address.
var robotNetwork = regexp.MustCompile(`^Xiaozhi-[0-9A-Fa-f]{4}$`)

// chooseNetwork returns the network of the named robot, or of the only one in range.
func (m *manager) chooseNetwork(ctx context.Context, wanted string) (string, error) {
	out, err := nmcli(ctx, "-t", "-e", "no", "-f", "SSID", "device", "wifi", "list", "ifname", m.device, "--rescan", "yes")
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
	case wanted != "" && slices.Contains(found, wanted):
		return wanted, nil
	case wanted != "":
		return "", fmt.Errorf("no robot opens the network %s now; these do: %s", wanted, cmp.Or(strings.Join(found, ", "), "none"))
	case len(found) == 0:
		return "", errors.New("no robot is in configuration mode here: none opens a network Xiaozhi-XXXX. A robot does a minute after it could not " +
			"join its Wi-Fi")
	case len(found) > 1:
		return "", fmt.Errorf("several robots are in configuration mode; choose one with --ap: %s", strings.Join(found, ", "))
	}
	return found[0], nil
}

// join changes from the machine's Wi-Fi to a robot's network. The default route stays,
// since a robot's network has no other machines.
func (m *manager) join(ctx context.Context, ssid string) error {
	m.removeProfile(ctx) // an earlier run may have been killed
	_, err := nmcli(ctx, "connection", "add", "save", "no", "type", "wifi", "con-name", profile, "ifname", m.device, "autoconnect", "no",
		"ssid", ssid, "ipv4.never-default", "yes", "ipv6.method", "disabled")
	if err == nil {
		_, err = nmcli(ctx, "--wait", joinSeconds, "connection", "up", "id", profile, "ifname", m.device)
	}
	if err != nil {
		return fmt.Errorf("join %s: %w", ssid, err)
	}
	return nil
}

func (m *manager) removeProfile(ctx context.Context) {
	_, _ = nmcli(ctx, "connection", "delete", "id", profile) // usually it does not exist
}

// restore returns to the machine's earlier network.
func (m *manager) restore(ctx context.Context) error {
	m.removeProfile(ctx)
	if m.before == "" {
		return nil
	}
	if _, err := nmcli(ctx, "--wait", joinSeconds, "connection", "up", "uuid", m.before); err != nil {
		return fmt.Errorf("this machine has not come back to its Wi-Fi: %w; nmcli connection up uuid %s", err, m.before)
	}
	return nil
}
