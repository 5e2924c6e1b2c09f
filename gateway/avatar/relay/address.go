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

// shownAddress returns address without its query, which may hold a key.
func shownAddress(address string) string {
	if at, _, has := strings.Cut(address, "?"); has {
		return at + "?…"
	}
	return address
}

// checkURL checks the form of an address. Its errors do not quote the address, which may hold a
// key.
func (k kind) checkURL(address string) error {
	u, err := url.Parse(address)
	example := k.schemes[0] + "://127.0.0.1:8001"
	switch {
	case err != nil:
		return fmt.Errorf("url cannot be read; an example is %s", example)
	case u.User != nil:
		return errors.New("url holds a user or a password; give that as key, which is never shown")
	case !slices.Contains(k.schemes, u.Scheme) || u.Host == "":
		return fmt.Errorf("url is to begin with %s://, as in %s", strings.Join(k.schemes, ":// or "), example)
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
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, u.Host)
	if err != nil {
		return nil, unreachable(address, err)
	}
	return conn, nil
}

// unreachable turns a dial error into a sentence for the owner.
func unreachable(address string, err error) error {
	address = shownAddress(address)
	var refusal *socket.Refusal
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s; start the program and switch on its API, or correct url", address)
	case errors.As(err, &refusal):
		return fmt.Errorf("something else than the program answers at %s (HTTP %d); correct url", address, refusal.Status)
	}
	return err
}
