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

type provisionFlags struct {
	ota          string
	ssid         string
	passwordFile string
	portal       string
	wifi         bool
	ap           string
	json         bool

	password string
	page     *url.URL
	out      lines
}

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
			f.out = lines{c.OutOrStdout(), f.json}
			return f.provision(c.Context())
		},
	}
	s := c.Flags()
	s.StringVar(&f.ota, "ota", "", "`URL` of the appliance's bootstrap; without it, the appliance that is found by browsing")
	s.StringVar(&f.ssid, "ssid", "", "`NAME` of the Wi-Fi that the robot is to join; without it, those it knows")
	s.StringVar(&f.passwordFile, "password-file", "", "`FILE` that holds the password of that Wi-Fi")
	s.StringVar(&f.portal, "portal", portalAddress, "`URL` of the robot's page")
	s.BoolVar(&f.wifi, "wifi", false, "join the robot's network Xiaozhi-XXXX with this machine's Wi-Fi, and come back")
	s.StringVar(&f.ap, "ap", "", "`NAME` of that network, where several robots open one")
	s.BoolVar(&f.json, "json", false, "print JSON, an object a line")
	return c
}

// provision points a robot in configuration mode at an appliance.
func (f *provisionFlags) provision(ctx context.Context) (err error) {
	if f.passwordFile != "" {
		if f.password, err = readPassword(f.passwordFile); err != nil {
			return err
		}
	}
	if f.ota == "" { // the robot's own network has no appliance to find
		if f.ota, err = browse(ctx, f.out, lastingURL); err == nil {
			err = checkOTA(f.ota) // any machine of the network may have answered
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

func (f *provisionFlags) check() (err error) {
	if f.page, err = url.Parse(f.portal); err != nil || f.page.Scheme != "http" || f.page.Host == "" {
		return command.Usagef("--portal %q is not an address such as %s", f.portal, portalAddress)
	}
	switch {
	case f.ssid == "" && f.passwordFile != "":
		return command.Usagef("--password-file goes with --ssid")
	case len(f.ssid) > 32:
		return command.Usagef("--ssid has more than the 32 bytes that the name of a Wi-Fi can have")
	case f.ap != "" && (!f.wifi || !robotNetwork.MatchString(f.ap)):
		return command.Usagef("--ap is as in Xiaozhi-A1B2, and goes with --wifi")
	case f.ota != "":
		return checkOTA(f.ota)
	}
	return nil
}

// readPassword reads the password of a Wi-Fi. It returns an error if it is too long: a robot
// would write beyond its buffer.
func readPassword(name string) (string, error) {
	text, err := readUpTo(name, 1024)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if n := len(password); n < 8 || n > 63 || strings.ContainsAny(password, "\r\n\x00") {
		return "", fmt.Errorf("%s does not hold the password of a Wi-Fi, which is one line of 8 to 63 characters", name)
	}
	return password, nil
}

// configure fills in the robot's page.
func (f *provisionFlags) configure(ctx context.Context) error {
	p := openPortal(f.page)
	before, err := p.waitForPage(ctx)
	if err != nil {
		return err
	}
	if before == "" {
		before = "the address it was built with"
	}
	f.out.line("robot", "asks", plain.Line(before))
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
		return errors.New("the robot holds the address, but knows no Wi-Fi: give it one on its page, or run this again with --ssid; it stays in " +
			"configuration mode")
	}
	if err := p.leave(ctx); err != nil {
		return fmt.Errorf("the robot holds the address, but did not leave configuration mode; restart it: %w", err)
	}
	f.out.line("robot", "leaves", "configuration mode; perch robot list shows it when it has checked in")
	return nil
}

// restoreWithin bounds the return to the machine's own network.
const restoreWithin = 90 * time.Second

// throughWiFi configures the robot in the robot's own network. The machine always returns to
// its own network: a login over its Wi-Fi is cut off until then.
func (f *provisionFlags) throughWiFi(ctx context.Context) (err error) {
	m, err := findManager(ctx)
	if err != nil {
		return err
	}
	ap, err := m.chooseNetwork(ctx, f.ap)
	if err != nil {
		return err
	}
	// The program must survive the end of a login, and output that nobody reads.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP, syscall.SIGPIPE)
	defer signal.Stop(hangups)
	defer func() {
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreWithin)
		defer cancel()
		if failed := m.restore(back); failed != nil {
			err = errors.Join(err, failed)
			return
		}
		f.out.line("this machine", "is back in its own network", "")
	}()
	f.out.line("this machine", "joins "+ap, "")
	if err := m.join(ctx, ap); err != nil {
		return err
	}
	return f.configure(ctx)
}
