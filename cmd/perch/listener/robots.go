package listener

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"

	"perch/cmd/perch/config"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/gateway/robot/udp"
	"perch/health"
)

// Robots is where robots connect by MQTT, with their sound by UDP. Without it they use their
// WebSockets.
type Robots struct {
	listeners []net.Listener // in the clear, and by TLS
	sound     *udp.Socket
	condition health.Part
}

// OpenRobots opens the addresses of robots' MQTT. What cannot be opened costs nobody else
// anything: the condition says why.
func OpenRobots(c *config.Config, log *slog.Logger) *Robots {
	r := &Robots{condition: health.Part{Name: "robots-mqtt", OK: true, Note: "turned off by robots.mqtt and robots.udp"}}
	if c.Robots.MQTT.Listen == "" && c.Robots.MQTT.TLS == "" || c.Robots.UDP == "" {
		return r
	}
	if err := r.open(c, log); err != nil {
		r.Close()
		log.Warn("robots cannot connect by MQTT", "err", err)
		return &Robots{condition: health.Part{Name: "robots-mqtt", Note: err.Error() + "; until then robots use their WebSockets"}}
	}
	r.condition.Note = "on " + r.listeners[0].Addr().String()
	return r
}

// open opens the listeners and the socket.
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

// Run has serve hold the robots' connections until ctx ends.
func (r *Robots) Run(ctx context.Context, serve func(ctx context.Context, sound *udp.Socket, listeners ...net.Listener) error) error {
	if r.sound == nil {
		return nil
	}
	return serve(ctx, r.sound, r.listeners...)
}

// Counters returns what is counted of datagrams.
func (r *Robots) Counters() []admin.Counter {
	dropped := func() uint64 { return 0 }
	if r.sound != nil {
		dropped = r.sound.Dropped
	}
	return []admin.Counter{{Name: "perch_datagrams_dropped_total",
		Help:  "Datagrams of robots' sound that belonged to no talk, came twice, were forged, or came too fast.",
		Count: dropped}}
}

// Condition returns whether robots can connect, and where.
func (r *Robots) Condition() health.Part { return r.condition }

// Port returns the port of robots' MQTT, 0 where they cannot connect.
func (r *Robots) Port() int {
	if len(r.listeners) == 0 {
		return 0
	}
	return r.listeners[0].Addr().(*net.TCPAddr).Port
}

// Close closes what was opened. After Run there is nothing to close.
func (r *Robots) Close() {
	for _, l := range r.listeners {
		_ = l.Close() // nothing is served there
	}
	if r.sound != nil {
		r.sound.Close()
	}
}
