// Package listener opens the addresses of the configuration, and serves HTTP and robots' MQTT
// on them. What is served is mounted by the appliance.
package listener

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"

	"perch/cmd/perch/config"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/health"
)

// Keys of the configuration that name addresses. Each key has its handlers.
const (
	Network  = "listen"             // for robots and everybody on the network
	OpenClaw = "skins.openclaw"     // for programs made for OpenClaw's gateway
	Ingress  = "web.ingress_listen" // for proxies that let in owners only
	Debug    = "debug.listen"       // for Go's profiles
	Local    = "local"              // for programs of this machine
	TLS      = "tls.listen"         // for the network, encrypted
	Socket   = ""                   // of the commands of this machine
)

// Server is a listener, and the HTTP server behind it.
type Server struct {
	Listener net.Listener
	Server   *http.Server
	Key      string // that names the address
}

// Set holds the listeners of an appliance.
type Set struct {
	Servers    []*Server
	Lingering  httpserver.Lingering // connections that robots are to close first
	Downloads  httpserver.Downloads // of robots
	IngressErr error                // why Ingress is not open

	data        string
	certificate *certificate // nil where nothing is encrypted
	log         *slog.Logger
	stop        sync.Once
}

// Open opens the listeners of a configuration, and the socket of the commands for a data
// directory. Without Ingress and the socket all else works, so that these only warn.
func Open(c *config.Config, data string, log *slog.Logger) (*Set, error) {
	s := &Set{data: data, log: log}
	var err error
	if len(c.TLS.Listen) > 0 {
		if s.certificate, err = newCertificate(c.TLS, log); err != nil {
			return nil, err
		}
	}
	one := func(address string) []string {
		if address == "" {
			return nil
		}
		return []string{address}
	}
	err = errors.Join(s.open(Network, c.Listen), s.open(OpenClaw, one(c.Skins.OpenClaw)), s.open(Debug, one(c.Debug.Listen)),
		s.open(Local, c.Local), s.open(TLS, c.TLS.Listen))
	if err != nil {
		s.Stop()
		return nil, err
	}
	if c.Web.Enabled {
		if s.IngressErr = s.open(Ingress, one(c.Web.IngressListen)); s.IngressErr != nil {
			log.Warn("Home Assistant cannot show the page", "err", s.IngressErr)
		}
	}
	if l, err := listenSocket(SocketPath(data)); err != nil {
		// The commands can still come by --url.
		log.Warn("the commands of this machine have no socket", "err", err)
	} else {
		s.add(l, Socket)
	}
	return s, nil
}

// open opens the addresses that a key of the configuration names.
func (s *Set) open(key string, addresses []string) (err error) {
	for _, address := range addresses {
		for i, one := range resolve(address) {
			l, failed := net.Listen("tcp", one)
			if i > 0 && (errors.Is(failed, syscall.EADDRNOTAVAIL) || errors.Is(failed, syscall.EAFNOSUPPORT)) {
				continue // a machine without IPv6
			}
			if failed != nil {
				err = errors.Join(err, Error(one, key, failed))
				continue
			}
			s.add(l, key)
		}
	}
	return err
}

// resolve returns an address, or both that localhost stands for: a program that asks for it
// may try either first, and not the other.
func resolve(address string) []string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "localhost" {
		return []string{address}
	}
	return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
}

// add adds a listener.
func (s *Set) add(l net.Listener, key string) {
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second, // of a handshake of TLS, too
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		// No WriteTimeout: streams and WebSockets stay open, and set their own. The
		// connection limit bounds all others.
		ErrorLog:  slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		Protocols: new(http.Protocols),

		ConnContext: s.Lingering.ConnContext,
	}
	server.Protocols.SetHTTP1(true) // WebSockets need it, and one protocol has one set of limits
	if key == TLS {
		server.TLSConfig = s.certificate.tls()
	}
	s.Servers = append(s.Servers, &Server{httpserver.LimitListener(l, s.log), server, key})
}

// Handle mounts routes on the addresses of a key.
func (s *Set) Handle(key string, routes func(*gin.Engine)) error {
	if len(s.At(key)) == 0 {
		return nil
	}
	e, err := httpserver.NewEngine(s.log)
	if err != nil {
		return err
	}
	routes(e)
	for _, one := range s.Servers {
		if one.Key == key {
			one.Server.Handler = e
		}
	}
	return nil
}

// Listen opens another TCP address that a key of the configuration names.
func Listen(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, Error(address, key, err)
	}
	return l, nil
}

// Error returns an error of net.Listen as a sentence with its cure.
func Error(address, key string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use by another program; stop that program or change %s in the configuration", address, key)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s may not be opened by this user; choose a port over 1023 in %s", address, key)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is no address of this machine; change %s in the configuration", address, key)
	}
	return fmt.Errorf("open %s (%s in the configuration): %w", address, key, err)
}

// Serve serves every listener until Stop, and returns the first failure.
func (s *Set) Serve() error {
	failed := make(chan error, len(s.Servers))
	for _, one := range s.Servers {
		go func() {
			if one.Server.TLSConfig != nil {
				failed <- one.Server.ServeTLS(one.Listener, "", "") // the certificate is in its configuration
				return
			}
			failed <- one.Server.Serve(one.Listener)
		}()
	}
	var first error
	for range s.Servers {
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) && first == nil {
			first = fmt.Errorf("a listener failed: %w", err)
			s.Stop()
		}
	}
	return first
}

// Limits of a stop. Together they leave eight seconds of the service manager's TimeoutStopSec
// (packaging/perch.service) for what ends after the listeners.
const (
	downloadsWithin = 10 * time.Second // may take to end: a robot crashes where one is broken off
	requestsWithin  = 2 * time.Second  // may other requests take after them

	StopWithin = downloadsWithin + requestsWithin
)

// Stop waits for robots' downloads, closes the listeners, gives requests a moment, and closes
// their connections.
func (s *Set) Stop() {
	s.stop.Do(func() {
		finishing, finished := context.WithTimeout(context.Background(), downloadsWithin)
		defer finished()
		if left := s.Downloads.Finish(finishing); left > 0 {
			s.log.Warn("downloads of robots are broken off by the stop; the robots keep what they have, and may restart", "count", left)
		}
		ctx, cancel := context.WithTimeout(context.Background(), requestsWithin)
		defer cancel()
		var wg sync.WaitGroup
		for _, one := range s.Servers {
			wg.Go(func() {
				if one.Server.Shutdown(ctx) != nil {
					_ = one.Server.Close() // its connections are closed either way
				}
				_ = one.Listener.Close() // where it was never served
			})
		}
		wg.Wait()
		s.Lingering.Close()
	})
}

// Addresses returns those of Network, as they were opened.
func (s *Set) Addresses() []string { return s.At(Network) }

// At returns the addresses that a key of the configuration names, as they were opened.
func (s *Set) At(key string) []string {
	var all []string
	for _, one := range s.Servers {
		if one.Key == key {
			all = append(all, one.Listener.Addr().String())
		}
	}
	return all
}

// URL returns where a program of this machine finds the appliance.
func (s *Set) URL() string { return "http://" + Dialable(append(s.At(Local), s.At(Network)...)[0]) }

// Dialable returns where an address that this machine listens on is reached from within it.
func Dialable(address string) string {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", at.Port())
	}
	return address
}

// Condition returns the condition of the listeners. A listener that fails ends the appliance, so
// that only the commands' socket can be missing.
func (s *Set) Condition() health.Part {
	path := SocketPath(s.data)
	if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeSocket == 0 {
		return health.Part{Name: "doors"}.Saying(
			fmt.Sprintf("the commands of this machine find no socket at %s; restart the appliance, and see its log", path))
	}
	return health.Part{Name: "doors", OK: true}.Saying(fmt.Sprintf("listens on %s", strings.Join(s.Addresses(), ", ")))
}

// Encryption returns the condition of the certificate, if there is one: its names and how long
// it is valid, or what is wrong with it. Soon to expire is not a failure yet.
func (s *Set) Encryption() []health.Part {
	if s.certificate == nil {
		return nil
	}
	shown, _ := s.certificate.latest(nil) // it has no error
	err := config.Expiry(shown.Leaf, time.Now())
	part := health.Part{Name: "tls", OK: !errors.Is(err, config.ErrDates)}
	if err != nil {
		return []health.Part{part.Saying(err.Error())}
	}
	return []health.Part{part.Saying(
		fmt.Sprintf("a certificate for %s, until %s", config.Names(shown.Leaf), shown.Leaf.NotAfter.Format(time.DateOnly)))}
}

// Counters returns what is counted of connections that robots close.
func (s *Set) Counters() []admin.Counter {
	return []admin.Counter{
		{Name: "perch_connections_kept_open_total", Help: "Connections that were kept open after their last answer, for the robot to close.",
			Count: func() uint64 { return s.Lingering.Counts().Kept }},
		{Name: "perch_connections_kept_open_timeouts_total", Help: "Of those, connections that the robot had not closed within a second.",
			Count: func() uint64 { return s.Lingering.Counts().TimedOut }},
		{Name: "perch_connections_not_kept_open_total", Help: "Connections closed at once, for too many were kept open.",
			Count: func() uint64 { return s.Lingering.Counts().Untimely }},
	}
}

// Check requests an answer of every listener, and returns an error for each that gives none.
func (s *Set) Check(ctx context.Context) error {
	var failed error
	for _, one := range s.Servers {
		if err := one.check(ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("listener %s: %w", one.Listener.Addr(), err))
		}
	}
	return failed
}

// check requests /health. Any answer will do.
func (s *Server) check(ctx context.Context) error {
	own := s.Listener.Addr()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, own.Network(), Dialable(own.String()))
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/health", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
	return errors.Join(err, response.Body.Close())
}

// listenSocket opens a unix socket, in the place of a socket that no program serves.
func listenSocket(path string) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close() // it was only to see
		return nil, fmt.Errorf("%s is served by another program", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove a dead socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the commands' socket: %w", err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(fmt.Errorf("open the commands' socket: %w", err), l.Close())
	}
	return l, nil
}

// SocketPath returns where the appliance of a data directory listens for the commands: in its
// runtime directory where the service manager made one, else beside its data.
func SocketPath(data string) string {
	if dir := os.Getenv("RUNTIME_DIRECTORY"); dir != "" {
		return filepath.Join(dir, "perch.sock")
	}
	return filepath.Join(data, "perch.sock")
}
