package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// provisionFlags are the options of perch-tools provision.
type provisionFlags struct {
	ota      string
	ssid     string
	password string
	page     *url.URL
	wifi     bool
	ap       string
}

// provision points a robot in configuration mode at an appliance.
func provision(ctx context.Context, args []string, stdout, _ io.Writer) error {
	f, err := parseProvision(args, stdout)
	if err != nil {
		return err
	}
	if f.ota == "" { // in the robot's network there is nobody to find
		if f.ota, err = browseLasting(ctx, stdout); err == nil {
			err = checkOTA(f.ota) // anybody may have answered
		}
		if err != nil {
			return err
		}
	}
	if !f.wifi {
		return f.configure(ctx, stdout)
	}
	return f.throughWiFi(ctx, stdout)
}

func parseProvision(args []string, stdout io.Writer) (*provisionFlags, error) {
	f := &provisionFlags{}
	s := flag.NewFlagSet("perch-tools provision", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	s.StringVar(&f.ota, "ota", "", "`URL` of the appliance's bootstrap; without it, the appliance that is found by browsing")
	s.StringVar(&f.ssid, "ssid", "", "`NAME` of the Wi-Fi that the robot is to join; without it, those it knows")
	passwordFile := s.String("password-file", "", "`FILE` that holds the password of that Wi-Fi")
	page := s.String("portal", portalAddress, "`URL` of the robot's page")
	s.BoolVar(&f.wifi, "wifi", false, "join the robot's network Xiaozhi-XXXX with this machine's Wi-Fi, and come back")
	s.StringVar(&f.ap, "ap", "", "`NAME` of that network, where several robots open one")
	others, err := parseAround(s, args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, helped(s, stdout, "")
	}
	if err == nil {
		err = f.check(others, *passwordFile, *page)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if *passwordFile != "" {
		f.password, err = readPassword(*passwordFile)
	}
	return f, err
}

func (f *provisionFlags) check(others []string, passwordFile, page string) (err error) {
	if f.page, err = url.Parse(page); err != nil || f.page.Scheme != "http" || f.page.Host == "" {
		return fmt.Errorf("--portal %q is no address such as %s", page, portalAddress)
	}
	switch {
	case len(others) > 0:
		return fmt.Errorf("it takes no %q", others[0])
	case f.ssid == "" && passwordFile != "":
		return errors.New("--password-file goes with --ssid")
	case len(f.ssid) > 32:
		return errors.New("--ssid has more than the 32 bytes that the name of a Wi-Fi can have")
	case f.ap != "" && (!f.wifi || !robotNetwork.MatchString(f.ap)):
		return errors.New("--ap is as in Xiaozhi-A1B2, and goes with --wifi")
	case f.ota != "":
		return checkOTA(f.ota)
	}
	return nil
}

// readPassword refuses what no Wi-Fi has: a robot would write a longer one
// over its own memory.
func readPassword(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 1024))
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if n := len(password); n < 8 || n > 63 || strings.ContainsAny(password, "\r\n\x00") {
		return "", fmt.Errorf("%s holds no password of a Wi-Fi: that is one line of 8 to 63 characters", name)
	}
	return password, nil
}

// configure speaks with the robot's page.
func (f *provisionFlags) configure(ctx context.Context, stdout io.Writer) error {
	p := openPortal(f.page)
	before, err := p.await(ctx)
	if err != nil {
		return err
	}
	if before == "" {
		before = "the address it was built with"
	}
	fmt.Fprintf(stdout, "robot  asks      %s\n", plainText(before))
	if err := p.tell(ctx, f.ota); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "robot  is told   %s\n", f.ota)
	if f.ssid != "" {
		if err := p.join(ctx, f.ssid, f.password); err != nil {
			return fmt.Errorf("%w; it stays in configuration mode", err)
		}
		fmt.Fprintf(stdout, "robot  joins     %s\n", plainText(f.ssid))
	} else if p.knows(ctx) == 0 {
		return errors.New("the robot holds the address, but knows no Wi-Fi: give it one on its page, or run this again with --ssid; it stays in configuration mode")
	}
	if err := p.leave(ctx); err != nil {
		return fmt.Errorf("the robot holds the address, but did not leave configuration mode; restart it: %w", err)
	}
	fmt.Fprintln(stdout, "robot  leaves    configuration mode; perch devices shows it when it has checked in")
	return nil
}

// comesBackWithin bounds the return to the machine's own network.
const comesBackWithin = 90 * time.Second

// throughWiFi does that in the robot's network, and comes back whatever
// happens: who has logged in over that Wi-Fi is cut off meanwhile, and must
// not be for good.
func (f *provisionFlags) throughWiFi(ctx context.Context, stdout io.Writer) (err error) {
	m, err := findManager(ctx)
	if err != nil {
		return err
	}
	ap, err := m.pick(ctx, f.ap)
	if err != nil {
		return err
	}
	// A login that ends, and output that nobody reads, end no program that
	// has asked to be told.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP, syscall.SIGPIPE)
	defer signal.Stop(hangups)
	defer func() {
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), comesBackWithin)
		defer cancel()
		if failed := m.comeBack(back); failed != nil {
			err = errors.Join(err, failed)
			return
		}
		fmt.Fprintln(stdout, "this machine is back in its own network")
	}()
	fmt.Fprintf(stdout, "this machine joins %s\n", ap)
	if err := m.join(ctx, ap); err != nil {
		return err
	}
	return f.configure(ctx, stdout)
}
