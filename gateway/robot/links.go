package robot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"perch/device"
	"perch/gateway/httpserver"
	"perch/gateway/robot/control"
	"perch/gateway/robot/udp"
)

// refreshEvery is how often an idle robot is asked for its status, such as its battery level, and given a
// new token for its camera.
const refreshEvery = 10 * time.Minute

// links holds the MQTT connections of all robots.
type links struct {
	*sessions
	pace *httpserver.Pace // limits the rate of new connections per peer

	mu   sync.Mutex
	open map[device.ID]*link
}

func newLinks(s *sessions) *links {
	return &links{sessions: s, pace: httpserver.NewPace(), open: map[device.ID]*link{}}
}

// of returns the MQTT connection of a robot, or nil if none exists.
func (l *links) of(id device.ID) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[id]
}

func (l *links) all() []*link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.open))
}

// Connected returns how many robots are connected by MQTT.
func (l *links) Connected() int { return len(l.all()) }

// add adds a robot's connection. If the robot has an earlier connection, add closes it and waits until
// it has ended. It returns false once the server is stopping.
func (l *links) add(k *link) bool {
	if l.checkAccepting() != nil {
		return false
	}
	l.mu.Lock()
	earlier := l.open[k.robot.ID]
	l.open[k.robot.ID] = k
	l.mu.Unlock()
	if earlier != nil {
		earlier.mu.Lock()
		earlier.replaced = true
		earlier.mu.Unlock()
		earlier.conn.Close()
		<-earlier.done
	}
	return true
}

// remove removes a connection that has ended, unless another one has replaced it.
func (l *links) remove(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[k.robot.ID] == k {
		delete(l.open, k.robot.ID)
	}
}

// ServeMQTT accepts robots' MQTT connections on the listeners and their sound on the socket, until ctx
// ends, or until a listener or the socket fails. It closes the socket and the listeners before it
// returns.
func (l *links) ServeMQTT(ctx context.Context, sound *udp.Socket, listeners ...net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1+len(listeners))
	var running sync.WaitGroup
	serve := func(run func() error) {
		running.Go(func() {
			defer cancel() // connections need the sound, and the sound needs connections
			failed <- run()
		})
	}
	serve(func() error { return sound.Run(ctx) })
	for _, listener := range listeners {
		serve(func() error { return l.accept(ctx, listener, sound) })
	}
	l.refreshIdle(ctx)
	running.Wait()
	close(failed)
	var joined error
	for err := range failed {
		joined = errors.Join(joined, err)
	}
	return joined
}

// accept serves the connections of a listener until ctx ends or the listener fails. It closes the listener and the
// connections before it returns.
func (l *links) accept(ctx context.Context, listener net.Listener, sound *udp.Socket) error {
	ctx, cancel := context.WithCancel(ctx)
	var connections sync.WaitGroup
	defer connections.Wait()
	defer cancel()
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	for {
		conn, err := listener.Accept()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("accept a robot's MQTT connection: %w", err)
		}
		connections.Go(func() {
			end := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer end()
			l.connect(conn, sound)
		})
	}
}

// refreshIdle refreshes the links of idle robots every ten minutes, until ctx ends.
func (l *links) refreshIdle(ctx context.Context) {
	every := time.NewTicker(refreshEvery)
	defer every.Stop()
	var refreshes sync.WaitGroup
	defer refreshes.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		for _, k := range l.all() {
			if k.current() == nil {
				refreshes.Go(func() { k.refresh(ctx) })
			}
		}
	}
}

// connect admits a robot and serves its connection.
func (l *links) connect(conn net.Conn, sound *udp.Socket) {
	if l.pace.CheckPeer(conn.RemoteAddr().String()) != nil {
		_ = conn.Close() // the robot connects again later
		return
	}
	var robot device.Robot
	var client device.Client
	c, err := control.Accept(conn, func(given control.Credentials) (string, error) {
		id, err := device.ParseID(given.Username)
		if err != nil {
			return "", err
		}
		client = device.NewClient(given.ClientID)
		robot, err = l.options.Robots.Admit(id, client, given.Password)
		return MQTTTopic, err
	})
	if err != nil {
		l.strangers.log.Warn("a client of robots' MQTT did not log in", "address", conn.RemoteAddr(), "err", err)
		return
	}
	leave, err := l.strangers.reserve(robot.ID)
	if err != nil {
		c.Close()
		return
	}
	defer leave()
	l.options.Robots.RecordSeen(robot.ID, time.Now())
	host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	peer, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // never fails for TCP
	if base, err := url.Parse(robot.BaseURL); err == nil && base.Hostname() != "" {
		host = base.Hostname() // inside a container, robots use another address than the local one
	}
	k := newLink(l.sessions, newConnection(l.shared, robot, client, c, host, peer.Addr()))
	defer close(k.done)
	if !l.add(k) {
		k.conn.Close()
		return
	}
	k.serve(sound, func() { l.remove(k) })
}
