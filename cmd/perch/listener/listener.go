// Package listener opens the addresses of the configuration, and runs the HTTP servers on them.
// The caller mounts the routes. The package also opens the sockets for robots that connect over
// MQTT.
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
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"

	"perch/cmd/perch/authority"
	"perch/cmd/perch/config"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/health"
)

// Keys of the configuration that hold addresses. All addresses of a key have the same routes.
const (
	Network  = "listen"             // for robots and everybody on the network
	OpenClaw = "skins.openclaw"     // for programs made for OpenClaw's gateway
	VCCP     = "skins.vccp"         // for clients of VCCP on this machine that expect the protocol's own port
	Ingress  = "web.ingress_listen" // for proxies that authenticate the owner
	Debug    = "debug.listen"       // for Go's profiles
	Local    = "local"              // for programs on this machine
	TLS      = "tls.listen"         // for the network, encrypted
	Socket   = ""                   // the Unix socket that perch's commands use, which no configuration key names
)

// Server is a listener, and the HTTP server behind it.
type Server struct {
	Listener net.Listener
	Server   *http.Server
	Key      string // the configuration key of the address, such as Network
}

// Set holds the listeners of an appliance.
type Set struct {
	Servers    []*Server
	Lingering  httpserver.Lingering // connections that wait for the robot to close them
	Downloads  httpserver.Downloads // running downloads of robots
	HTTPS      *HTTPS               // nil if it is off
	IngressErr error                // why the Ingress address could not be opened; nil if it is open or not configured

	data        string
	certificate *certificate // nil if tls.listen is empty
	log         *slog.Logger
	stop        sync.Once
}

// Open opens the listeners of a configuration, and the Unix socket of perch's commands (see
// SocketPath). It logs a failure of VCCP, Ingress or the socket instead of returning it, because everything else
// works without these. It does not open the https address (see HTTPS). hosts returns the names in the
// certificate of the https address. id is the ID of the appliance.
func Open(c *config.Config, data, id string, hosts func() []string, log *slog.Logger) (*Set, error) {
	authority := authority.New(authority.Options{Data: data, Name: "Perch " + id, Names: hosts, Log: log})
	s := &Set{data: data, log: log, HTTPS: newHTTPS(c, authority)}
	var err error
	if len(c.TLS.Listen) > 0 {
		if s.certificate, err = newCertificate(c.TLS, log); err != nil {
			return nil, err
		}
	}
	optional := func(address string) []string {
		if address == "" {
			return nil
		}
		return []string{address}
	}
	err = errors.Join(s.open(Network, c.Listen), s.open(OpenClaw, optional(c.Skins.OpenClaw)), s.open(Debug, optional(c.Debug.Listen)),
		s.open(Local, c.Local), s.open(TLS, c.TLS.Listen))
	if err != nil {
		s.Stop()
		return nil, err
	}
	s.openVCCP(c)
	if c.Web.Enabled {
		if s.IngressErr = s.open(Ingress, optional(c.Web.IngressListen)); s.IngressErr != nil {
			log.Warn("the proxies in web.ingress cannot show the page", "err", s.IngressErr)
		}
	}
	if s.HTTPS != nil {
		s.add(s.HTTPS.late, TLS)
	}
	if l, err := listenSocket(SocketPath(data)); err != nil {
		// Commands can still connect with --url.
		log.Warn("commands on this machine cannot connect by the socket", "err", err)
	} else {
		s.add(l, Socket)
	}
	return s, nil
}

// open opens the addresses of a configuration key. It joins the errors of the addresses that fail.
func (s *Set) open(key string, addresses []string) (failed error) {
	for _, address := range addresses {
		for i, resolved := range resolve(address) {
			l, err := net.Listen("tcp", resolved)
			if i > 0 && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)) {
				continue // a machine without IPv6
			}
			if err != nil {
				failed = errors.Join(failed, Error(resolved, key, err))
				continue
			}
			s.add(l, key)
		}
	}
	return failed
}

// openVCCP opens the address for clients of VCCP. It does not open the address if another program uses the
// address or if the configuration contains its port for another program, because all clients can also use an
// address in local. It opens both addresses of localhost or none: if another program had one of them, clients
// of that program could connect to Perch at the other.
func (s *Set) openVCCP(c *config.Config) {
	address, before := c.Skins.VCCP, len(s.Servers)
	if address == "" {
		return
	}
	err := fmt.Errorf("%s is left to another program: allowed_origins or relays contain its port", address)
	if !c.NamesProgramAt(address) {
		err = s.open(VCCP, []string{address})
	}
	if err == nil {
		return
	}
	for _, server := range s.Servers[before:] {
		_ = server.Listener.Close() // has accepted no connection
	}
	s.Servers = s.Servers[:before]
	s.log.Info("clients of VCCP find Perch only at the addresses in local", "err", err)
}

// resolve returns the IPv4 and the IPv6 loopback address for localhost, and any other address
// unchanged. Some clients try only one of the two.
func resolve(address string) []string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "localhost" {
		return []string{address}
	}
	return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
}

// add adds a listener with a server that has no routes yet.
func (s *Set) add(l net.Listener, key string) {
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second, // also bounds the TLS handshake
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		// There is no WriteTimeout because streams and WebSockets stay open; they set their
		// own deadlines. Slow readers of other responses count against the connection limit.
		ErrorLog:  slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		Protocols: new(http.Protocols),

		ConnContext: s.Lingering.ConnContext,
	}
	server.Protocols.SetHTTP1(true) // WebSockets need HTTP/1; HTTP/2 would have other limits
	switch {
	case key == TLS && s.certificate != nil:
		server.TLSConfig = s.certificate.tls()
	case key == TLS:
		server.TLSConfig = s.HTTPS.tls()
	}
	s.Servers = append(s.Servers, &Server{httpserver.LimitListener(l, s.log), server, key})
}

// Handle mounts routes on all addresses of a configuration key. It does nothing if the set has no server for the key.
func (s *Set) Handle(key string, routes func(*gin.Engine)) error {
	if !slices.ContainsFunc(s.Servers, func(server *Server) bool { return server.Key == key }) {
		return nil
	}
	e, err := httpserver.NewEngine(s.log)
	if err != nil {
		return err
	}
	routes(e)
	for _, server := range s.Servers {
		if server.Key == key {
			server.Server.Handler = e
		}
	}
	return nil
}

// Listen opens a TCP address that is not part of a Set. key names it in errors.
func Listen(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, Error(address, key, err)
	}
	return l, nil
}

// Error turns err, an error of net.Listen, into an error with advice for the owner. key is the
// configuration key of the address.
func Error(address, key string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use by another program; stop that program or change %s in the configuration", address, key)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s may not be opened by this user; choose a port over 1023 in %s", address, key)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is not an address of this machine; change %s in the configuration", address, key)
	}
	return fmt.Errorf("open %s (%s in the configuration): %w", address, key, err)
}

// Serve serves every listener until Stop. If a listener fails, Serve stops the others and returns the
// first failure.
func (s *Set) Serve() error {
	ended := make(chan error, len(s.Servers))
	for _, server := range s.Servers {
		go func() {
			if server.Server.TLSConfig != nil {
				ended <- server.Server.ServeTLS(server.Listener, "", "") // TLSConfig has the certificate
				return
			}
			ended <- server.Server.Serve(server.Listener)
		}()
	}
	var failure error
	for range s.Servers {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) && failure == nil {
			failure = fmt.Errorf("a listener failed: %w", err)
			s.Stop()
		}
	}
	return failure
}

// Timeouts of Stop. systemd gives the service 20 seconds to stop (TimeoutStopSec in
// packaging/perch.service). The remaining eight seconds are for the parts that end after the
// listeners.
const (
	downloadTimeout = 10 * time.Second // a robot may crash if its download is interrupted
	requestTimeout  = 2 * time.Second  // for other requests, after the downloads

	StopWithin = downloadTimeout + requestTimeout
)

// Stop waits for robots' downloads, closes the listeners, waits for other requests, and then
// closes all connections.
func (s *Set) Stop() {
	s.stop.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), downloadTimeout)
		defer cancel()
		if left := s.Downloads.Finish(ctx); left > 0 {
			s.log.Warn("stopping interrupts downloads of robots; their stored data is safe, but they may restart", "count", left)
		}
		ctx, cancel = context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		var wg sync.WaitGroup
		for _, server := range s.Servers {
			wg.Go(func() {
				if server.Server.Shutdown(ctx) != nil {
					_ = server.Server.Close() // closes the connections even if it returns an error
				}
				_ = server.Listener.Close() // Shutdown does not close a listener that was never served
			})
		}
		wg.Wait()
		s.Lingering.Close()
	})
}

// Addresses returns the open addresses for robots and everybody on the network.
func (s *Set) Addresses() []string { return s.At(Network) }

// At returns the open addresses of a configuration key, with the ports that the kernel chose for
// port 0.
func (s *Set) At(key string) []string {
	var addresses []string
	for _, server := range s.Servers {
		if at := server.Listener.Addr(); server.Key == key && at != nil {
			addresses = append(addresses, at.String())
		}
	}
	return addresses
}

// URL returns the URL at which programs on this machine reach the appliance.
func (s *Set) URL() string { return "http://" + Dialable(append(s.At(Local), s.At(Network)...)[0]) }

// Dialable returns the address at which this machine reaches its own listener. For a listener on
// all interfaces that is the IPv4 loopback address.
func Dialable(address string) string {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", at.Port())
	}
	return address
}

// Condition returns the condition of the listeners. It checks only that the socket of perch's
// commands exists: if a listener failed, Serve would have ended.
func (s *Set) Condition() health.Part {
	path := SocketPath(s.data)
	if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeSocket == 0 {
		return health.Part{Name: "doors"}.Saying(
			fmt.Sprintf("the socket of the commands is missing at %s; restart the appliance, and see its log", path))
	}
	return health.Part{Name: "doors", OK: true}.Saying(fmt.Sprintf("listens on %s", strings.Join(s.Addresses(), ", ")))
}

// Encryption returns the condition of the certificate: its names and its expiry date, or its
// fault. A certificate that expires soon is still OK. If tls.listen is empty, it returns nil.
func (s *Set) Encryption() []health.Part {
	if s.certificate == nil {
		return nil
	}
	current, _ := s.certificate.latest(nil) // never fails
	err := config.CheckExpiry(current.Leaf, time.Now())
	part := health.Part{Name: "tls", OK: !errors.Is(err, config.ErrDates)}
	if err != nil {
		return []health.Part{part.Saying(err.Error())}
	}
	return []health.Part{part.Saying(
		fmt.Sprintf("a certificate for %s, until %s", config.Names(current.Leaf), current.Leaf.NotAfter.Format(time.DateOnly)))}
}

// Counters returns the metrics of connections that wait for the robot to close them.
func (s *Set) Counters() []admin.Counter {
	return []admin.Counter{
		{Name: "perch_connections_kept_open_total", Help: "Connections that were kept open after their last response, for the robot to close.",
			Count: func() uint64 { return s.Lingering.Counts().Kept }},
		{Name: "perch_connections_kept_open_timeouts_total", Help: "Kept-open connections that the robot did not close within a second.",
			Count: func() uint64 { return s.Lingering.Counts().TimedOut }},
		{Name: "perch_connections_not_kept_open_total", Help: "Connections closed at once because too many were kept open.",
			Count: func() uint64 { return s.Lingering.Counts().ClosedAtOnce }},
	}
}

// Check sends a request to every listener, and returns an error for each that does not respond.
func (s *Set) Check(ctx context.Context) error {
	var failed error
	for _, server := range s.Servers {
		address := server.Listener.Addr()
		if address == nil { // the https address, which is not open yet
			continue
		}
		if err := check(ctx, address); err != nil {
			failed = errors.Join(failed, fmt.Errorf("listener %s: %w", address, err))
		}
	}
	return failed
}

// check requests /health from a listener. A response with any status is a success.
func check(ctx context.Context, address net.Addr) error {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, address.Network(), Dialable(address.String()))
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

// listenSocket opens a Unix socket that only the user and the group of this process may open. It replaces a
// socket file that no program serves any more.
func listenSocket(path string) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close() // nothing was sent
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

// SocketPath returns the path of the socket of perch's commands. It is in the runtime directory
// if the service manager has made one, otherwise in the data directory.
func SocketPath(data string) string {
	if dir := os.Getenv("RUNTIME_DIRECTORY"); dir != "" {
		return filepath.Join(dir, "perch.sock")
	}
	return filepath.Join(data, "perch.sock")
}
