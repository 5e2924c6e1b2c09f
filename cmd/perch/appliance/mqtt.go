package appliance

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"perch/cmd/perch/config"
	"perch/device"
	"perch/gateway/admin"
	"perch/gateway/homeassistant"
	"perch/ota"
	"perch/store"
)

// MQTTUser is the embedded broker's, and MQTTPasswordFile the file of its password,
// where its owner has chosen none.
const (
	MQTTUser         = "perch"
	MQTTPasswordFile = "mqtt-password"
)

// MirrorOptions are those of the configuration. The embedded broker's password is
// left open where its owner has chosen none.
func MirrorOptions(m config.MQTT) (homeassistant.Options, error) {
	o := homeassistant.Options{Broker: m.Broker, Listen: m.Listen, User: m.User, Base: m.BaseTopic, Prefix: m.DiscoveryPrefix,
		Log: slog.New(slog.DiscardHandler)}
	var err error
	if o.Password, o.CA, err = m.Files(); err != nil {
		return o, err
	}
	if m.Own() {
		o.User = cmp.Or(o.User, MQTTUser)
	}
	return o, nil
}

// checkMirror finds what the mirror could not work with, a line for each fault.
func checkMirror(m config.MQTT) error {
	o, err := MirrorOptions(m)
	if err != nil {
		return err
	}
	o.ID, o.Password = "00000000", cmp.Or(o.Password, "made at the first start")
	return o.Check()
}

// newMirror makes the connection to Home Assistant.
func (a *Appliance) newMirror() error {
	o, err := MirrorOptions(a.Config().MQTT)
	if err != nil {
		return err
	}
	if a.Config().MQTT.Generated() {
		if o.Password, err = Secret(a.Data, MQTTPasswordFile, a.Log); err != nil {
			return err
		}
	}
	o.ID, o.Version, o.URL, o.Host, o.Started, o.Log = a.ID, a.Version, a.address, a.host, a.Started, a.Log
	o.Away, o.ShareTranscripts = time.Duration(a.Config().Robots.AwayAfter), a.Config().Robots.ShareTranscripts
	o.Transport = device.Transport(a.Config().Robots.Transport)
	o.Robots, o.Talk, o.Notifier, o.Board, o.Bus = a.OwnedRobots(), a.control(), a.notifier, a.board, a.Bus
	o.Senses, o.Firmware, o.Questions, o.Notices = a.Senses.intake, updates{a.Firmware}, questions{a.hooks, a.Talk}, a.Notices
	o.Announced = store.NewTable[[]string](a.DB, "announced")
	o.Kept = store.NewTable[[]homeassistant.Waiting](a.DB, "mqtt-waiting")
	o.Gestures, o.Characters = a.gestures, a.Characters
	o.Serve = serveBroker(o.Base, homeassistant.ClientID(a.ID), a.Log)
	o.Restart, o.Phrase = a.askRestart, a.phraseOf
	o.Ask = a.homeAssistant.broker
	a.Mirror, err = homeassistant.New(o)
	return err
}

// mqttPart is the condition of the mirror.
func (a *Appliance) mqttPart() admin.Part {
	s := a.Mirror.Status()
	part := admin.Part{Name: "mqtt", OK: s.Connected, Since: s.Since}
	note := fmt.Sprintf("tells the broker at %s", s.Broker)
	switch {
	case s.Broker == "none":
		part.OK, note = true, "turned off by mqtt.broker"
	case s.Connecting:
		part.OK, note = true, fmt.Sprintf("is connecting to the broker at %s", s.Broker)
	case !s.Connected:
		note = s.Cause.Error()
	case s.Broker == config.EmbeddedBroker:
		note = fmt.Sprintf("is the broker itself, on %s", a.Config().MQTT.Listen)
	}
	if s.Ends > 0 {
		note = fmt.Sprintf("%s; the embedded broker has ended %d times since perch was started, last at %s: %v", note, s.Ends,
			s.Ended.Format(time.DateTime), s.Why)
	}
	return part.Saying(note)
}

// updates is the catalogue as Home Assistant's mirror has it.
type updates struct{ *ota.Firmware }

func (u updates) Update(id device.ID) (installed, latest string) {
	update := u.Firmware.Update(id)
	return update.Installed, update.Latest
}
