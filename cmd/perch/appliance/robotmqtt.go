package appliance

import (
	"context"
	"crypto/tls"
	"net"

	"perch/gateway/admin"
	"perch/gateway/door"
	"perch/gateway/robot"
	"perch/gateway/robot/udp"
	"perch/ota"
)

// robotMQTT is where robots connect by MQTT. Without it they use their WebSockets.
type robotMQTT struct {
	listeners []net.Listener // in the clear, and by TLS
	sound     *udp.Socket
	shown     admin.Part
}

// openRobotMQTT opens the addresses of robots' MQTT. What cannot be opened costs
// nobody else anything: the condition says why.
func (a *Appliance) openRobotMQTT() (served ota.MQTT) {
	c := a.Config().Robots
	m := &a.robotMQTT
	m.shown = admin.Part{Name: "robots-mqtt", OK: true}.Saying("turned off by robots.mqtt and robots.udp")
	if c.MQTT.Listen == "" && c.MQTT.TLS == "" || c.UDP == "" {
		return ota.MQTT{}
	}
	served, err := m.open(a)
	if err != nil {
		m.close()
		m.shown.OK, m.shown.Note = false, err.Error()+"; until then robots use their WebSockets"
		a.Log.Warn("robots cannot connect by MQTT", "err", err)
		return ota.MQTT{}
	}
	served.Topic = robot.MQTTTopic
	m.shown.Note = "on " + m.listeners[0].Addr().String()
	return served
}

// open opens the listeners and the socket.
func (m *robotMQTT) open(a *Appliance) (served ota.MQTT, err error) {
	c := a.Config().Robots
	if m.sound, err = udp.Listen(c.UDP); err != nil {
		return served, ListenError(c.UDP, "robots.udp", err)
	}
	if c.MQTT.Listen != "" {
		l, err := net.Listen("tcp", c.MQTT.Listen)
		if err != nil {
			return served, ListenError(c.MQTT.Listen, "robots.mqtt.listen", err)
		}
		m.listeners = append(m.listeners, door.LimitListener(l, a.Log))
	}
	if c.MQTT.TLS != "" {
		certificate, err := newCertificate(a.Config().TLS, a.Log)
		if err != nil {
			return served, err
		}
		l, err := net.Listen("tcp", c.MQTT.TLS)
		if err != nil {
			return served, ListenError(c.MQTT.TLS, "robots.mqtt.tls", err)
		}
		m.listeners = append(m.listeners, tls.NewListener(door.LimitListener(l, a.Log), certificate.settings()))
	}
	served.Port = m.listeners[0].Addr().(*net.TCPAddr).Port
	return served, nil
}

// run holds the robots' connections until ctx ends.
func (m *robotMQTT) run(ctx context.Context, talk *robot.Server) error {
	if m.sound == nil {
		return nil
	}
	return talk.ServeMQTT(ctx, m.sound, m.listeners...)
}

// dropped counts the datagrams that no talk has taken.
func (m *robotMQTT) dropped() uint64 {
	if m.sound == nil {
		return 0
	}
	return m.sound.Dropped()
}

// close closes what was opened and not run.
func (m *robotMQTT) close() {
	for _, l := range m.listeners {
		_ = l.Close() // nothing was served there
	}
	if m.sound != nil {
		m.sound.Close()
	}
	m.listeners, m.sound = nil, nil
}

// MQTTPort is where robots connect by MQTT, 0 where they cannot.
func (a *Appliance) MQTTPort() int {
	if len(a.robotMQTT.listeners) == 0 {
		return 0
	}
	return a.robotMQTT.listeners[0].Addr().(*net.TCPAddr).Port
}
