package main

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
// tls.listen, the keyless forms on those in local, and the admin API on a socket
// that only its owner and group can open.
type doors struct {
	log         *slog.Logger
	servers     []*served
	certificate *certificate // nil where nothing is encrypted
	once        sync.Once
	lingering   door.Lingering // what robots are to close first
}

type served struct {
	listener net.Listener
	server   *http.Server
	key      string // of the configuration, that names the address; empty is the socket
}

// openDoors opens every listener.
func openDoors(a *app) (*doors, error) {
	d := &doors{log: a.log}
	if err := d.open(a); err != nil {
		d.stop()
		return nil, err
	}
	return d, nil
}

func (d *doors) open(a *app) error {
	l, err := newLocks(a)
	if err != nil {
		return err
	}
	if len(a.config.TLS.Listen) > 0 {
		if d.certificate, err = newCertificate(a.config.TLS, a.log); err != nil {
			return err
		}
	}
	public, err := houseEngine(a, l, &d.lingering)
	if err != nil {
		return err
	}
	encrypted, err := houseEngine(a, l, nil)
	if err != nil {
		return err
	}
	local, err := localEngine(a, l.origins)
	if err != nil {
		return err
	}
	owner, err := ownerEngine(a)
	if err != nil {
		return err
	}
	err = errors.Join(d.listen("listen", a.config.Listen, public), d.listen("local", a.config.Local, local),
		d.listen("tls.listen", a.config.TLS.Listen, encrypted))
	if err != nil {
		return err
	}
	if l, err := listenSocket(socketPath(a.data)); err != nil {
		// The commands can still come by --url.
		a.log.Warn("the commands of this machine have no socket", "err", err)
	} else {
		d.add(l, "", owner)
	}
	return nil
}

// listen opens the addresses that a key of the configuration names.
func (d *doors) listen(key string, addresses []string, e *gin.Engine) (err error) {
	for _, address := range addresses {
		for i, one := range each(address) {
			l, failed := net.Listen("tcp", one)
			if i > 0 && (errors.Is(failed, syscall.EADDRNOTAVAIL) || errors.Is(failed, syscall.EAFNOSUPPORT)) {
				continue // a machine without IPv6
			}
			if failed != nil {
				err = errors.Join(err, listenError(one, key, failed))
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
		// No WriteTimeout: streams and WebSockets stay open, and set their own. Of
		// all others the crowd does.
		ErrorLog:  slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
		Protocols: new(http.Protocols),

		ConnContext: d.lingering.ConnContext,
	}
	s.Protocols.SetHTTP1(true) // WebSockets need it, and one protocol has one set of limits
	if key == "tls.listen" {
		s.TLSConfig = d.certificate.settings()
	}
	d.servers = append(d.servers, &served{door.LimitListener(l, d.log), s, key})
}

// listenError says what is wrong with an address in the words of its owner.
func listenError(address, key string, err error) error {
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
	failed := make(chan error, len(d.servers))
	for _, s := range d.servers {
		go func() {
			if s.server.TLSConfig != nil {
				failed <- s.server.ServeTLS(s.listener, "", "") // the certificate is in its settings
				return
			}
			failed <- s.server.Serve(s.listener)
		}()
	}
	var first error
	for range d.servers {
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) && first == nil {
			first = fmt.Errorf("a listener failed: %w", err)
			d.stop()
		}
	}
	return first
}

// stopWithin is how long requests under way may take to end.
const stopWithin = 2 * time.Second

// stop closes the listeners, gives requests a moment, and closes them.
func (d *doors) stop() {
	d.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		var wg sync.WaitGroup
		for _, s := range d.servers {
			wg.Go(func() {
				if s.server.Shutdown(ctx) != nil {
					_ = s.server.Close() // its connections are closed either way
				}
				_ = s.listener.Close() // where it was never served
			})
		}
		wg.Wait()
		d.lingering.Close()
	})
}

// addresses are those in listen, as they were opened.
func (d *doors) addresses() []string { return d.at("listen") }

// at are the addresses that a key of the configuration names, as they were
// opened.
func (d *doors) at(key string) []string {
	var all []string
	for _, s := range d.servers {
		if s.key == key {
			all = append(all, s.listener.Addr().String())
		}
	}
	return all
}

// own is where a program of this machine finds the appliance.
func (d *doors) own() string {
	address := append(d.at("local"), d.at("listen")...)[0]
	if host, port, err := net.SplitHostPort(address); err == nil && net.ParseIP(host).IsUnspecified() {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	return "http://" + address
}

// announced is the port robots are told, of the first address they can reach.
func (d *doors) announced() (port int, ok bool) {
	for _, s := range d.servers {
		if port, ok := reachable(s.listener.Addr()); s.key == "listen" && ok {
			return port, true
		}
	}
	return 0, false
}

// listenSocket opens a unix socket in the place of one that nobody serves.
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

// socketPath is where the appliance takes the commands: in its own runtime
// directory where the service manager made one, else beside its data.
func socketPath(data string) string {
	if dir := os.Getenv("RUNTIME_DIRECTORY"); dir != "" {
		return filepath.Join(dir, "perch.sock")
	}
	return filepath.Join(data, "perch.sock")
}
