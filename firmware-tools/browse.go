package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"perch/gateway/mdns"
)

// browseLimit bounds the search; an appliance answers within a second.
const browseLimit = 5 * time.Second

// browse finds an appliance by mDNS, prints its name, and returns its address.
func browse(ctx context.Context, out lines, address func(mdns.Found) string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, browseLimit)
	defer cancel()
	all, err := mdns.Search{Type: mdns.Service}.All(ctx)
	switch {
	case errors.Is(err, mdns.ErrNoMulticast):
		return "", fmt.Errorf("%w, so the appliance cannot be found by browsing; name it with --ota http://HOST:8003/xiaozhi/ota/", err)
	case err != nil:
		return "", err
	}
	for _, f := range all {
		if at := address(f); at != "" {
			out.line("robot", "finds", f.Instance+" by browsing for "+mdns.Service)
			return at, nil
		}
	}
	return "", fmt.Errorf("no appliance answered for %s within %v; name it with --ota http://HOST:8003/xiaozhi/ota/", mdns.Service, browseLimit)
}

// lastingURL returns otaURL for a robot to store: with the appliance's name, if it has one,
// in place of its address, which may change.
func lastingURL(f mdns.Found) string {
	address := otaURL(f)
	u, err := url.Parse(address)
	name, local := strings.CutSuffix(f.Host, ".local")
	if address == "" || err != nil || !local || name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return address
	}
	u.Host = net.JoinHostPort(f.Host, u.Port())
	return u.String()
}

// otaURL returns the bootstrap URL of an appliance with its IPv4 address, because this
// machine may not resolve .local names and a robot does not support IPv6. It is empty
// without such an address.
func otaURL(f mdns.Found) string {
	path := f.TXT["ota"]
	if !strings.HasPrefix(path, "/") {
		path = "/xiaozhi/ota/"
	}
	for _, a := range f.Addrs {
		if a.Is4() {
			return "http://" + net.JoinHostPort(a.String(), strconv.Itoa(f.Port)) + path
		}
	}
	return ""
}
