package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/plain"
)

// provisionFlags are the options of the command provision.
type provisionFlags struct {
	ota          string // bootstrap URL; empty to find an appliance by mDNS
	ssid         string // network that the robot joins; empty for a network that it has stored
	passwordFile string // file with the password of ssid; empty for an open network
	portal       string // URL of the robot's configuration page
	wifi         bool   // join the robot's own network with this machine's Wi-Fi
	ap           string // name of the robot's own network; empty to choose the only one in range
	json         bool

	password string   // content of passwordFile
	page     *url.URL // parsed portal
	out      output
}

// provisionCommand returns the command perch-tools robot provision.
func provisionCommand() *cobra.Command {
	f := &provisionFlags{}
	c := &cobra.Command{
		Use:   "provision",
		Short: "Point a robot in configuration mode at an appliance",
		Example: `perch-tools robot provision --wifi
			perch-tools robot provision --wifi --ssid Home --password-file wifi.txt`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			f.out = output{c.OutOrStdout(), f.json}
			return f.provision(c.Context())
		},
	}
	s := c.Flags()
	s.StringVar(&f.ota, "ota", "", "bootstrap `URL` of the appliance; found by mDNS if omitted")
	s.StringVar(&f.ssid, "ssid", "", "`NAME` of the Wi-Fi network that the robot joins; its saved networks if omitted")
	s.StringVar(&f.passwordFile, "password-file", "", "`FILE` that contains the password of that network")
	s.StringVar(&f.portal, "portal", portalAddress, "`URL` of the robot's configuration page")
	s.BoolVar(&f.wifi, "wifi", false, "join the robot's network Xiaozhi-XXXX with this machine's Wi-Fi, and return afterwards")
	s.StringVar(&f.ap, "ap", "", "`NAME` of that network, if several robots are in configuration mode")
	s.BoolVar(&f.json, "json", false, "print JSON, one object per line")
	return c
}

// provision stores the bootstrap URL of an appliance in a robot in configuration mode.
func (f *provisionFlags) provision(ctx context.Context) (err error) {
	if f.passwordFile != "" {
		if f.password, err = readPassword(f.passwordFile); err != nil {
			return err
		}
	}
	if f.ota == "" { // browse first: the appliance cannot be reached from the robot's own network
		if f.ota, err = browse(ctx, f.out, lastingURL); err == nil {
			err = checkOTA(f.ota) // any machine on the network may have sent this URL
		}
		if err != nil {
			return err
		}
	}
	if !f.wifi {
		return f.configure(ctx)
	}
	return f.throughWiFi(ctx)
}

// check validates the options.
func (f *provisionFlags) check() (err error) {
	if f.page, err = url.Parse(f.portal); err != nil || f.page.Scheme != "http" || f.page.Host == "" {
		return command.Usagef("--portal %q is not a URL such as %s", f.portal, portalAddress)
	}
	switch {
	case f.ssid == "" && f.passwordFile != "":
		return command.Usagef("--password-file goes with --ssid")
	case len(f.ssid) > 32:
		return command.Usagef("--ssid is longer than 32 bytes, the maximum for a Wi-Fi name")
	case f.ap != "" && (!f.wifi || !robotNetwork.MatchString(f.ap)):
		return command.Usagef("--ap is a name such as Xiaozhi-A1B2, and goes with --wifi")
	case f.ota != "":
		return checkOTA(f.ota)
	}
	return nil
}

// readPassword reads a Wi-Fi password from a file. It returns an error unless the password has 8 to
// 63 bytes. A longer one would overflow a buffer of the robot.
func readPassword(name string) (string, error) {
	text, err := readUpTo(name, 1024)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if n := len(password); n < 8 || n > 63 || strings.ContainsAny(password, "\r\n\x00") {
		return "", fmt.Errorf("%s does not contain a Wi-Fi password, which is one line of 8 to 63 characters", name)
	}
	return password, nil
}

// configure submits the settings to the robot's configuration page, and makes the robot leave
// configuration mode.
func (f *provisionFlags) configure(ctx context.Context) error {
	p := openPortal(f.page)
	oldOTA, err := p.waitForPage(ctx)
	if err != nil {
		return err
	}
	if oldOTA == "" {
		oldOTA = "the address it was built with"
	}
	f.out.line("robot", "asks", plain.Line(oldOTA))
	if err := p.setOTA(ctx, f.ota); err != nil {
		return err
	}
	f.out.line("robot", "is told", f.ota)
	if f.ssid != "" {
		if err := p.join(ctx, f.ssid, f.password); err != nil {
			return fmt.Errorf("%w; it stays in configuration mode", err)
		}
		f.out.line("robot", "joins", plain.Line(f.ssid))
	} else if p.savedNetworks(ctx) == 0 {
		return errors.New("the robot has stored the address, but knows no Wi-Fi: enter one on its page, or run this command again with --ssid; it " +
			"stays in configuration mode")
	}
	if err := p.leave(ctx); err != nil {
		return fmt.Errorf("the robot has stored the address, but did not leave configuration mode; restart it: %w", err)
	}
	f.out.line("robot", "leaves", "configuration mode; perch robot list shows it once it has checked in")
	return nil
}

// restoreTimeout bounds the return to the machine's previous network.
const restoreTimeout = 90 * time.Second

// throughWiFi joins the robot's own network, configures the robot there, and always returns
// to the machine's previous network.
func (f *provisionFlags) throughWiFi(ctx context.Context) (err error) {
	w, err := findWiFi(ctx)
	if err != nil {
		return err
	}
	ap, err := w.chooseNetwork(ctx, f.ap)
	if err != nil {
		return err
	}
	// If the user is logged in over this Wi-Fi, the login breaks off now. Catch the signals that
	// this causes, so that the program survives and restores the network.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP, syscall.SIGPIPE)
	defer signal.Stop(hangups)
	defer func() {
		restoreCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
		defer cancel()
		if restoreErr := w.restore(restoreCtx); restoreErr != nil {
			err = errors.Join(err, restoreErr)
			return
		}
		f.out.line("this machine", "is back in its own network", "")
	}()
	f.out.line("this machine", "joins "+ap, "")
	if err := w.join(ctx, ap); err != nil {
		return err
	}
	return f.configure(ctx)
}
