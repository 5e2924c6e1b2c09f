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

// tendEvery is how often a robot that does not talk is asked for its status, and given a new token
// for its camera. Its battery is reported nowhere else.
const tendEvery = 10 * time.Minute

// links are the MQTT connections of all robots.
type links struct {
	*sessions
	pace *httpserver.Pace // of connections, before they have logged in

	mu   sync.Mutex
	open map[device.ID]*link
}

func newLinks(s *sessions) *links {
	return &links{sessions: s, pace: httpserver.NewPace(), open: map[device.ID]*link{}}
}

// of returns the MQTT connection of a robot, or nil.
func (l *links) of(id device.ID) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[id]
}

// all returns all MQTT connections.
func (l *links) all() []*link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.open))
}

// Connected returns how many robots are connected by MQTT.
func (l *links) Connected() int { return len(l.all()) }

// add adds a robot's connection in place of an earlier one, which it ends. It reports false once
// the server stops.
func (l *links) add(k *link) bool {
	if l.accepting() != nil {
		return false
	}
	l.mu.Lock()
	before := l.open[k.robot.ID]
	l.open[k.robot.ID] = k
	l.mu.Unlock()
	if before != nil {
		before.mu.Lock()
		before.replaced = true
		before.mu.Unlock()
		before.conn.Close()
		<-before.done
	}
	return true
}

func (l *links) remove(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[k.robot.ID] == k {
		delete(l.open, k.robot.ID)
	}
}

// ServeMQTT serves the connections of robots, and reads their sound, until ctx ends. It closes the
// socket and the listeners.
func (l *links) ServeMQTT(ctx context.Context, sound *udp.Socket, listeners ...net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1+len(listeners))
	var running sync.WaitGroup
	serve := func(run func() error) {
		running.Go(func() {
			defer cancel() // connections are of no use without sound, nor sound without them
			failed <- run()
		})
	}
	serve(func() error { return sound.Run(ctx) })
	for _, listener := range listeners {
		serve(func() error { return l.accept(ctx, listener, sound) })
	}
	l.tend(ctx)
	running.Wait()
	close(failed)
	var all error
	for err := range failed {
		all = errors.Join(all, err)
	}
	return all
}

// accept serves the connections of a listener.
func (l *links) accept(ctx context.Context, listener net.Listener, sound *udp.Socket) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
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

// tend looks after the robots that do not talk, until ctx ends.
func (l *links) tend(ctx context.Context) {
	every := time.NewTicker(tendEvery)
	defer every.Stop()
	var tended sync.WaitGroup
	defer tended.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		for _, k := range l.all() {
			if k.current() == nil {
				tended.Go(func() { k.tend(ctx) })
			}
		}
	}
}

// connect admits a robot and serves its connection.
func (l *links) connect(conn net.Conn, sound *udp.Socket) {
	if l.pace.CheckPeer(conn.RemoteAddr().String()) != nil {
		_ = conn.Close() // it may try again
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
		l.strangers.log.Warn("a robot's MQTT connection was refused", "address", conn.RemoteAddr(), "err", err)
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
		host = base.Hostname() // this machine may have another address inside a container
	}
	k := newLink(l.sessions, newConnection(l.shared, robot, client, c, host, peer.Addr()))
	defer close(k.done)
	if !l.add(k) {
		k.conn.Close()
		return
	}
	k.serve(sound, func() { l.remove(k) })
}
