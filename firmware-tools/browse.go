package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"perch/gateway/mdns"
)

// browseLimit is how long the link is searched; an appliance that is there
// answers within a second.
const browseLimit = 5 * time.Second

// browse finds an appliance on the local link, says which, and returns its OTA
// URL.
func browse(ctx context.Context, stdout io.Writer) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, browseLimit)
	defer cancel()
	found, instance := "", ""
	err := mdns.Browse(ctx, func(f mdns.Found) bool {
		found, instance = otaURL(f), f.Instance
		return found == ""
	})
	switch {
	case errors.Is(err, mdns.ErrNoMulticast):
		return "", fmt.Errorf("%w, so the appliance cannot be found by browsing; name it with --ota http://HOST:8003/xiaozhi/ota/", err)
	case err != nil:
		return "", err
	case found == "":
		return "", fmt.Errorf("no appliance answered for %s within %v; name it with --ota http://HOST:8003/xiaozhi/ota/", mdns.Service, browseLimit)
	}
	fmt.Fprintf(stdout, "robot  finds     %s by browsing for %s\n", instance, mdns.Service)
	return found, nil
}

// otaURL is where a found appliance answers robots: by address, as this
// machine may know no .local names. Empty where it told none of IPv4, the
// only kind a robot can use.
func otaURL(f mdns.Found) string {
	path := f.TXT["ota"]
	if path == "" || !strings.HasPrefix(path, "/") {
		path = "/xiaozhi/ota/"
	}
	for _, a := range f.Addrs {
		if a.Is4() {
			return "http://" + net.JoinHostPort(netip.Addr.String(a), strconv.Itoa(f.Port)) + path
		}
	}
	return ""
}
