package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"

	"perch/gateway/door"
)

// doors are the listeners and what is served behind each: everything with its
// key on the addresses in listen, the keyless forms on those in local, and the
// admin API on a socket that only its owner and group can open.
type doors struct {
	log     *slog.Logger
	servers []*served
	once    sync.Once
}

type served struct {
	listener net.Listener
	server   *http.Server
	public   bool
}

// openDoors opens every listener.
func openDoors(a *app) (*doors, error) {
	d := &doors{log: a.log}
	public, err := publicEngine(a)
	if err != nil {
		return nil, err
	}
	local, err := localEngine(a)
	if err != nil {
		return nil, err
	}
	owner, err := ownerEngine(a)
	if err != nil {
		return nil, err
	}
	open := func(address, key string, e *gin.Engine) error {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return listenError(address, key, err)
		}
		d.add(l, e, key == "listen")
		return nil
	}
	for _, address := range a.config.Listen {
		err = errors.Join(err, open(address, "listen", public))
	}
	for _, address := range a.config.Local {
		err = errors.Join(err, open(address, "local", local))
	}
	if err != nil {
		d.stop()
		return nil, err
	}
	if l, err := listenSocket(socketPath(a.data)); err != nil {
		// The commands can still come by --url.
		a.log.Warn("the commands of this machine have no socket", "err", err)
	} else {
		d.add(l, owner, false)
	}
	return d, nil
}

func (d *doors) add(l net.Listener, e *gin.Engine, public bool) {
	d.servers = append(d.servers, &served{l, &http.Server{
		Handler:           e,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		// No WriteTimeout: streams and WebSockets stay open, and set their own.
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}, public})
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

// publicEngine serves the house's network.
func publicEngine(a *app) (*gin.Engine, error) {
	token, err := secret(a.data, "admin-token", a.log)
	if err != nil {
		return nil, err
	}
	e, err := door.NewEngine(a.log)
	if err != nil {
		return nil, err
	}
	hosts := door.Hosts{Allowed: append([]string(nil), a.config.AllowedHosts...)}
	if u, err := url.Parse(a.config.PublicURL); err == nil && u.Hostname() != "" {
		hosts.Allowed = append(hosts.Allowed, strings.ToLower(u.Hostname()))
	}
	e.Use(door.Origins{Allowed: a.config.AllowedOrigins}.Admit(), door.Guard(hosts.Check))
	a.ota.Routes(e)
	a.talk.Routes(e)
	a.admin.Open(e)
	owner := e.Group("", door.Guard(door.NewKey(token, filepath.Join(a.data, "admin-token"), "X-Admin-Token").Check))
	a.admin.Routes(owner)
	a.metrics.Routes(owner)
	a.bridge.Admin(owner)
	key, err := secretOf("key", a.config.Bridge.Key, a.config.Bridge.KeyFile)
	if err != nil {
		return nil, err
	}
	a.bridge.Routes(e.Group("", door.Guard(door.NewKey(key, "bridge.key", "").Check)))
	if key, err = secretOf("key", a.config.Skins.Key, a.config.Skins.KeyFile); err != nil {
		return nil, err
	}
	a.skinRoutes(e, door.NewKey(key, "skins.key", "").Check)
	return e, nil
}

// localEngine serves programs on this machine.
func localEngine(a *app) (*gin.Engine, error) {
	e, err := door.NewEngine(a.log)
	if err != nil {
		return nil, err
	}
	e.Use(door.Guard(door.Local))
	a.admin.Open(e)
	a.admin.Routes(e)
	a.metrics.Routes(e)
	a.bridge.Routes(e)
	a.bridge.Admin(e)
	a.skinRoutes(e)
	return e, nil
}

// ownerEngine serves the commands.
func ownerEngine(a *app) (*gin.Engine, error) {
	e, err := door.NewEngine(a.log)
	if err != nil {
		return nil, err
	}
	a.admin.Open(e)
	a.admin.Routes(e)
	a.metrics.Routes(e)
	return e, nil
}

// serve serves every listener until stop, and returns the first failure.
func (d *doors) serve() error {
	failed := make(chan error, len(d.servers))
	for _, s := range d.servers {
		go func() { failed <- s.server.Serve(s.listener) }()
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
	})
}

// addresses are those in listen, as they were opened.
func (d *doors) addresses() []string {
	var all []string
	for _, s := range d.servers {
		if s.public {
			all = append(all, s.listener.Addr().String())
		}
	}
	return all
}

// announced is the port robots are told, of the first address they can reach.
func (d *doors) announced() (port int, ok bool) {
	for _, s := range d.servers {
		if port, ok := reachable(s.listener.Addr()); s.public && ok {
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
