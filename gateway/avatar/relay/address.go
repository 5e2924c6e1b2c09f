package relay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"perch/socket"
)

// redact returns address without its query, which may contain a key.
func redact(address string) string {
	if base, _, hasQuery := strings.Cut(address, "?"); hasQuery {
		return base + "?…"
	}
	return address
}

// browseURL is the value of Target.URL with which Perch browses the network for the program, if the
// kind allows that.
const browseURL = "find"

// checkURL checks the URL of a program. Its errors do not quote the URL, which may contain a key.
func (k kind) checkURL(address string) error {
	if k.browses && address == browseURL {
		return nil
	}
	u, err := url.Parse(address)
	example := k.schemes[0] + "://127.0.0.1:8001"
	switch {
	case err != nil:
		return fmt.Errorf("url is not a valid URL; an example is %s", example)
	case u.User != nil:
		return errors.New("url contains a user or a password; set key instead, which is never shown")
	case !slices.Contains(k.schemes, u.Scheme) || u.Host == "":
		return fmt.Errorf("url must begin with %s://, as in %s", strings.Join(k.schemes, ":// or "), example)
	}
	if n, err := strconv.Atoi(u.Port()); k.port && (err != nil || n < 1 || n > math.MaxUint16) {
		return fmt.Errorf("url names no port; an example is %s", example)
	}
	return nil
}

// dialHost connects to the host of a URL.
func dialHost(ctx context.Context, network, address string) (net.Conn, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, u.Host)
	if err != nil {
		return nil, unreachable(address, err)
	}
	return conn, nil
}

// unreachable returns an error for the owner that explains err, the error with which connecting to address
// has failed. It returns err itself if it has no better explanation.
func unreachable(address string, err error) error {
	address = redact(address)
	var refusal *socket.Refusal
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s; start the program and switch on its API, or correct url", address)
	case errors.As(err, &refusal):
		return fmt.Errorf("another program answers at %s (HTTP %d); correct url", address, refusal.Status)
	}
	return err
}
