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

// browseTimeout bounds the mDNS search. An appliance usually responds within a second.
const browseTimeout = 5 * time.Second

// browse finds an appliance by mDNS, prints its name, and returns its URL. The caller's function
// address returns the URL of a found appliance, or "" to skip the appliance.
func browse(ctx context.Context, out output, address func(mdns.Found) string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, browseTimeout)
	defer cancel()
	found, err := mdns.Search{Type: mdns.Service}.All(ctx)
	switch {
	case errors.Is(err, mdns.ErrNoMulticast):
		return "", fmt.Errorf("%w, so the appliance cannot be found by browsing; name it with --ota http://HOST:8003/xiaozhi/ota/", err)
	case err != nil:
		return "", err
	}
	for _, f := range found {
		if url := address(f); url != "" {
			out.line("robot", "finds", f.Instance+" by browsing for "+mdns.Service)
			return url, nil
		}
	}
	return "", fmt.Errorf("no appliance responded to a search for %s within %v; name it with --ota http://HOST:8003/xiaozhi/ota/", mdns.Service, browseTimeout)
}

// lastingURL returns the bootstrap URL to store in a robot. If the appliance has a .local name that
// consists of ASCII letters, digits and hyphens, the URL contains that name, because the
// appliance's IP address may change. Otherwise lastingURL returns the result of otaURL. It returns
// "" if the appliance has no IPv4 address.
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

// otaURL returns the bootstrap URL of an appliance, or "" if the appliance has no IPv4
// address. The URL contains the IPv4 address, because this machine may not be able to resolve
// .local names, and robots do not support IPv6.
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
