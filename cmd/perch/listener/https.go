package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"syscall"

	"perch/cmd/perch/authority"
	"perch/cmd/perch/config"
)

// HTTPS is an https address whose certificate Perch's own authority has signed. Browsers on other devices need the
// address, because they allow the microphone only over https. An HTTPS exists only if the configuration has no encrypted
// addresses. The address is opened when the owner first requests it, and at each later start.
type HTTPS struct {
	host      string // the host of the first address in the key listen
	firstPort int    // 0 for a port that the kernel chooses
	authority *authority.Authority
	late      *lateListener
	opening   sync.Mutex
}

// HTTPS listens on the first free port of the httpsPorts ports that begin with firstHTTPSPort.
const (
	firstHTTPSPort = 8443
	httpsPorts     = 10
)

// newHTTPS returns an HTTPS that is not open, or nil if the page is disabled or encrypted addresses are configured.
func newHTTPS(c *config.Config, authority *authority.Authority) *HTTPS {
	if !c.Web.Enabled || len(c.TLS.Listen) > 0 || len(c.Listen) == 0 {
		return nil
	}
	host, port, err := net.SplitHostPort(c.Listen[0])
	if err != nil {
		return nil // the configuration was checked
	}
	h := &HTTPS{host: host, firstPort: firstHTTPSPort, authority: authority, late: &lateListener{opened: make(chan struct{}), closed: make(chan struct{})}}
	if port == "0" {
		h.firstPort = 0
	}
	return h
}

// tls returns the TLS configuration of the address.
func (h *HTTPS) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: h.authority.GetCertificate}
}

// Open makes the certificate if it is missing, and opens the address if it is not open. It returns the port.
func (h *HTTPS) Open() (port int, err error) {
	h.opening.Lock()
	defer h.opening.Unlock()
	if at := h.late.Addr(); at != nil {
		return at.(*net.TCPAddr).Port, nil
	}
	if err := h.authority.Open(); err != nil {
		return 0, err
	}
	var l net.Listener
	for i := range httpsPorts {
		port = h.firstPort
		if port > 0 {
			port += i
		}
		l, err = new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(h.host, strconv.Itoa(port)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if err != nil {
		return 0, fmt.Errorf("open the https address: %w", err)
	}
	h.late.open(l)
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Reopen calls Open if the owner has opened the address in an earlier run. It logs an error of Open.
func (h *HTTPS) Reopen(log *slog.Logger) {
	if !h.authority.Exists() {
		return
	}
	if _, err := h.Open(); err != nil {
		log.Warn("the page has no https address, so that browsers on other devices have no microphone", "err", err)
	}
}

// HTTPSInfo describes the https address.
type HTTPSInfo struct {
	URLs        []string // alternative base URLs, such as "https://perch.local:8443", the best first
	Authority   string   // name of the authority in the lists of browsers and phones
	Fingerprint string   // SHA-256 of the authority's certificate: AA:BB:CC
}

// Describe calls Open, and describes the address.
func (h *HTTPS) Describe() (HTTPSInfo, error) {
	port, err := h.Open()
	if err != nil {
		return HTTPSInfo{}, err
	}
	c := h.authority.Certificate()
	info := HTTPSInfo{Authority: c.Subject.CommonName, Fingerprint: authority.Fingerprint(c)}
	for _, name := range h.authority.Names() {
		info.URLs = append(info.URLs, "https://"+net.JoinHostPort(name, strconv.Itoa(port)))
	}
	return info, nil
}

// Files returns the certificate of the authority in DER, and an Apple profile with it. Both are nil before Open.
func (h *HTTPS) Files() (certificate, profile []byte) {
	if c := h.authority.Certificate(); c != nil {
		certificate, profile = c.Raw, []byte(authority.Profile(c))
	}
	return certificate, profile
}

// lateListener is a listener whose Accept waits until open is called.
type lateListener struct {
	opened, closed chan struct{}

	mu       sync.Mutex
	listener net.Listener // nil until it is opened
	isClosed bool
}

// open makes Accept return the connections of listener.
func (l *lateListener) open(listener net.Listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		_ = listener.Close() // has accepted no connection
		return
	}
	l.listener = listener
	close(l.opened)
}

// Accept implements net.Listener.
func (l *lateListener) Accept() (net.Conn, error) {
	select {
	case <-l.opened:
		return l.listener.Accept()
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *lateListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		return net.ErrClosed
	}
	l.isClosed = true
	close(l.closed)
	if l.listener == nil {
		return nil
	}
	return l.listener.Close()
}

// Addr implements net.Listener. It returns nil until the listener is opened.
func (l *lateListener) Addr() net.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener == nil {
		return nil
	}
	return l.listener.Addr()
}
