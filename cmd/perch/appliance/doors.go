package appliance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"

	"perch/gateway/door"
)

// doors are the listeners and what is served behind each: everything with its
// key on the addresses in listen, the same but the robots' doors on those in
// tls.listen, the keyless forms on those in local, a protocol that wants a listener of
// its own on skins.openclaw, and the admin API on a socket that only its owner and group
// can open.
type doors struct {
	log         *slog.Logger
	Servers     []*Served
	certificate *certificate // nil where nothing is encrypted
	once        sync.Once
	Lingering   door.Lingering // what robots are to close first
	downloads   door.Downloads // of robots
	noIngress   error          // why the address for proxies alone is not open
}

// Served is a listener, and the server behind it.
type Served struct {
	Listener net.Listener
	Server   *http.Server
	Key      string // of the configuration, that names the address; empty is the socket
}

// open opens every listener.
func (d *doors) open(a *Appliance) error {
	l, err := newLocks(a)
	if err != nil {
		return err
	}
	a.locks = l
	if err := a.openPage(l); err != nil {
		return err
	}
	if len(a.Config().TLS.Listen) > 0 {
		if d.certificate, err = newCertificate(a.Config().TLS, a.Log); err != nil {
			return err
		}
	}
	err = errors.Join(
		d.listen("listen", a.Config().Listen, func(e *gin.Engine) { a.networkRoutes(e, l, &d.Lingering) }),
		a.listenOpenClaw(d, l),
		a.listenIngress(d, l),
		a.listenDebug(d),
		d.listen("local", a.Config().Local, func(e *gin.Engine) { a.localRoutes(e, l) }),
		d.listen("tls.listen", a.Config().TLS.Listen, func(e *gin.Engine) { a.networkRoutes(e, l, nil) }))
	if err != nil {
		return err
	}
	owner, err := door.NewEngine(a.Log) // serves the commands
	if err != nil {
		return err
	}
	a.admin.Open(owner)
	a.admin.Routes(owner)
	a.metrics.Routes(owner)
	a.pageOwned(owner)
	a.relays.Routes(owner)
	a.character.Owned(owner)
	if l, err := listenSocket(Socket(a.Data)); err != nil {
		// The commands can still come by --url.
		a.Log.Warn("the commands of this machine have no socket", "err", err)
	} else {
		d.add(l, "", owner)
	}
	return nil
}

// listen opens the addresses that a key of the configuration names.
func (d *doors) listen(key string, addresses []string, routes func(*gin.Engine)) error {
	e, err := door.NewEngine(d.log)
	if err != nil {
		return err
	}
	routes(e)
	for _, address := range addresses {
		for i, one := range each(address) {
			l, failed := net.Listen("tcp", one)
			if i > 0 && (errors.Is(failed, syscall.EADDRNOTAVAIL) || errors.Is(failed, syscall.EAFNOSUPPORT)) {
				continue // a machine without IPv6
			}
			if failed != nil {
				err = errors.Join(err, ListenError(one, key, failed))
				continue
			}
			d.add(l, key, e)
		}
	}
	return err
}

// each is an address, or both that localhost stands for: a program that asks for
// it may try either first, and not the other.
func each(address string) []string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "localhost" {
		return []string{address}
	}
	return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
}

func (d *doors) add(l net.Listener, key string, e *gin.Engine) {
	s := &http.Server{
		Handler:           e,
		ReadHeaderTimeout: 10 * time.Second, // of a handshake of TLS, too
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		// No WriteTimeout: streams and WebSockets stay open, and set their own. The
		// connection limit bounds all others.
		ErrorLog:  slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
		Protocols: new(http.Protocols),

		ConnContext: d.Lingering.ConnContext,
	}
	s.Protocols.SetHTTP1(true) // WebSockets need it, and one protocol has one set of limits
	if key == "tls.listen" {
		s.TLSConfig = d.certificate.settings()
	}
	d.Servers = append(d.Servers, &Served{door.LimitListener(l, d.log), s, key})
}

// ListenError is an error of net.Listen as a sentence with its cure.
func ListenError(address, key string, err error) error {
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

// serve serves every listener until stop, and returns the first failure.
func (d *doors) serve() error {
	failed := make(chan error, len(d.Servers))
	for _, s := range d.Servers {
		go func() {
			if s.Server.TLSConfig != nil {
				failed <- s.Server.ServeTLS(s.Listener, "", "") // the certificate is in its settings
				return
			}
			failed <- s.Server.Serve(s.Listener)
		}()
	}
	var first error
	for range d.Servers {
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) && first == nil {
			first = fmt.Errorf("a listener failed: %w", err)
			d.stop()
		}
	}
	return first
}

// Limits of a stop. Together they leave eight seconds of those that the service manager
// waits (TimeoutStopSec in packaging/perch.service) for what ends after the doors.
const (
	downloadsWithin = 10 * time.Second // may take to end: a robot crashes where one is broken off
	stopWithin      = 2 * time.Second  // may other requests take after them
)

// stop waits for robots' downloads, closes the listeners, gives requests a moment, and
// closes them.
func (d *doors) stop() {
	d.once.Do(func() {
		finishing, finished := context.WithTimeout(context.Background(), downloadsWithin)
		defer finished()
		if left := d.downloads.Finish(finishing); left > 0 {
			d.log.Warn("downloads of robots are broken off by the stop; the robots keep what they have, and may restart", "count", left)
		}
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		var wg sync.WaitGroup
		for _, s := range d.Servers {
			wg.Go(func() {
				if s.Server.Shutdown(ctx) != nil {
					_ = s.Server.Close() // its connections are closed either way
				}
				_ = s.Listener.Close() // where it was never served
			})
		}
		wg.Wait()
		d.Lingering.Close()
	})
}

// Addresses are those in listen, as they were opened.
func (d *doors) Addresses() []string { return d.At("listen") }

// At are the addresses that a key of the configuration names, as they were
// opened.
func (d *doors) At(key string) []string {
	var all []string
	for _, s := range d.Servers {
		if s.Key == key {
			all = append(all, s.Listener.Addr().String())
		}
	}
	return all
}

// own is where a program of this machine finds the appliance.
func (d *doors) own() string {
	return "http://" + dialable(append(d.At("local"), d.At("listen")...)[0])
}

// announced is the port that robots connect to: of the first address that they
// can reach.
func (d *doors) announced() (port int, ok bool) {
	for _, s := range d.Servers {
		if port, ok := reachable(s.Listener.Addr()); s.Key == "listen" && ok {
			return port, true
		}
	}
	return 0, false
}

// listenSocket opens a unix socket and replaces one that no program serves.
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

// Socket is where the appliance takes the commands: in its own runtime
// directory where the service manager made one, else beside its data.
func Socket(data string) string {
	if dir := os.Getenv("RUNTIME_DIRECTORY"); dir != "" {
		return filepath.Join(dir, "perch.sock")
	}
	return filepath.Join(data, "perch.sock")
}
