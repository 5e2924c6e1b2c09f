package listener

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"perch/cmd/perch/config"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/gateway/robot/udp"
	"perch/health"
)

// Robots holds the sockets for robots that connect over MQTT, with their sound over UDP. If the
// sockets are not open, robots connect over WebSockets.
type Robots struct {
	listeners []net.Listener // without and with TLS, as configured
	sound     *udp.Socket    // nil if the sockets are not open
	mu        sync.Mutex     // guards condition
	condition health.Part
}

// OpenRobots opens the addresses of robots' MQTT. A failure is only logged, and shown by
// Condition, since the rest of the appliance works without MQTT.
func OpenRobots(c *config.Config, log *slog.Logger) *Robots {
	r := &Robots{condition: health.Part{Name: "robots-mqtt", OK: true, Note: "turned off by robots.mqtt and robots.udp"}}
	if c.Robots.MQTT.Listen == "" && c.Robots.MQTT.TLS == "" || c.Robots.UDP == "" {
		return r
	}
	if err := r.open(c, log); err != nil {
		r.Close()
		log.Warn("robots cannot connect by MQTT", "err", err)
		return &Robots{condition: health.Part{Name: "robots-mqtt", Note: fmt.Sprintf("%v; robots connect over WebSockets instead", err)}}
	}
	r.condition = r.condition.Saying(fmt.Sprintf("listens on %s", r.listeners[0].Addr()))
	return r
}

// open opens the listeners and the UDP socket. After an error the caller closes r.
func (r *Robots) open(c *config.Config, log *slog.Logger) (err error) {
	if r.sound, err = udp.Listen(c.Robots.UDP); err != nil {
		return Error(c.Robots.UDP, "robots.udp", err)
	}
	if c.Robots.MQTT.Listen != "" {
		l, err := Listen("robots.mqtt.listen", c.Robots.MQTT.Listen)
		if err != nil {
			return err
		}
		r.listeners = append(r.listeners, httpserver.LimitListener(l, log))
	}
	if c.Robots.MQTT.TLS != "" {
		certificate, err := newCertificate(c.TLS, log)
		if err != nil {
			return err
		}
		l, err := Listen("robots.mqtt.tls", c.Robots.MQTT.TLS)
		if err != nil {
			return err
		}
		r.listeners = append(r.listeners, tls.NewListener(httpserver.LimitListener(l, log), certificate.tls()))
	}
	return nil
}

// Run calls serve with the open sockets; serve runs until ctx ends or a socket fails. Without sockets Run returns
// nil at once.
func (r *Robots) Run(ctx context.Context, serve func(ctx context.Context, sound *udp.Socket, listeners ...net.Listener) error) error {
	if r.sound == nil {
		return nil
	}
	err := serve(ctx, r.sound, r.listeners...)
	if err != nil && ctx.Err() == nil {
		r.mu.Lock()
		r.condition = health.Part{Name: r.condition.Name, Note: fmt.Sprintf("%v; robots connect over WebSockets instead", err)}
		r.mu.Unlock()
	}
	return err
}

// Counters returns the metrics of datagrams.
func (r *Robots) Counters() []admin.Counter {
	dropped := func() uint64 { return 0 }
	if r.sound != nil {
		dropped = r.sound.Dropped
	}
	return []admin.Counter{{Name: "perch_datagrams_dropped_total",
		Help:  "Datagrams of robots' sound that belonged to no session, came twice, were forged, or came too fast.",
		Count: dropped}}
}

// Condition returns the condition of robots' MQTT, with its address.
func (r *Robots) Condition() health.Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.condition
}

// Port returns the TCP port of robots' MQTT, or 0 if it is not open.
func (r *Robots) Port() int {
	if len(r.listeners) == 0 {
		return 0
	}
	return r.listeners[0].Addr().(*net.TCPAddr).Port
}

// Close closes the sockets. It is needed if Run was not called; otherwise the function serve has
// closed them.
func (r *Robots) Close() {
	for _, l := range r.listeners {
		_ = l.Close() // an error loses nothing: the listener has no connections
	}
	if r.sound != nil {
		r.sound.Close()
	}
}
