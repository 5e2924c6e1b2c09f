package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"perch/gateway/admin"
	"perch/gateway/homeassistant"
	"perch/store"
)

// mqttConfig is how Home Assistant hears of the house.
type mqttConfig struct {
	Broker          string `yaml:"broker"`
	Listen          string `yaml:"listen"` // the embedded broker
	User            string `yaml:"user"`
	Password        string `yaml:"password"`
	PasswordFile    string `yaml:"password_file"`
	CA              string `yaml:"ca"` // a file
	BaseTopic       string `yaml:"base_topic"`
	DiscoveryPrefix string `yaml:"discovery_prefix"`
}

const embedded = "embedded"

// mqttUser is the embedded broker's, and mqttSecret the file of its password,
// where its owner has chosen none.
const (
	mqttUser   = "perch"
	mqttSecret = "mqtt-password"
)

// generated reports whether the broker's password is one we make.
func (m mqttConfig) generated() bool {
	return m.Broker == embedded && m.Password == "" && m.PasswordFile == ""
}

// options are what the configuration says. The embedded broker's password is
// left open where its owner has chosen none.
func (m mqttConfig) options() (homeassistant.Options, error) {
	o := homeassistant.Options{Broker: m.Broker, Listen: m.Listen, User: m.User, Base: m.BaseTopic, Prefix: m.DiscoveryPrefix,
		Log: slog.New(slog.DiscardHandler)}
	var err error
	if o.Password, err = secretOf("password", m.Password, m.PasswordFile); err != nil {
		return o, err
	}
	if m.Broker == embedded {
		o.User = cmp.Or(o.User, mqttUser)
	}
	if m.CA != "" {
		if o.CA, err = os.ReadFile(m.CA); err != nil {
			return o, fmt.Errorf("read ca: %w", err)
		}
	}
	return o, nil
}

// mqtt finds what the mirror could not work with.
func (k *checker) mqtt(m mqttConfig) {
	if _, err := splitAddress(m.Listen); err != nil {
		k.fault("mqtt.listen", "%s", err)
	}
	o, err := m.options()
	if err != nil {
		k.failed("mqtt", err)
		return
	}
	o.ID, o.Password = "00000000", cmp.Or(o.Password, "made at the first start")
	if _, err := homeassistant.New(o); err != nil {
		for fault := range strings.Lines(strings.TrimPrefix(err.Error(), homeassistant.ErrOptions.Error()+": ")) {
			fault = strings.TrimSpace(fault)
			if key, what, _ := strings.Cut(fault, " "); strings.HasPrefix(key, "mqtt.") {
				k.fault(key, "%s", what)
				continue
			}
			k.fault("mqtt", "%s", fault)
		}
	}
}

// newMirror makes the house known to Home Assistant.
func (a *app) newMirror() error {
	o, err := a.config.MQTT.options()
	if err != nil {
		return err
	}
	if a.config.MQTT.generated() {
		if o.Password, err = secret(a.data, mqttSecret, a.log); err != nil {
			return err
		}
	}
	o.ID, o.Version, o.URL, o.Host, o.Started, o.Log = a.id, version, a.address, a.host, a.started, a.log
	o.Away, o.ShareTranscripts = time.Duration(a.config.Robots.AwayAfter), a.config.Robots.ShareTranscripts
	o.Robots, o.Talk, o.Notifier, o.Board, o.Bus = a.residents(), a.movers(), a.herald, a.board, a.bus
	o.Senses, o.Firmware, o.Questions, o.Notices = a.senses.intake, updates{a.firmware}, asked{a.hooks, a.talk}, a.notices
	o.Announced = store.NewTable[[]string](a.db, "announced")
	o.Kept = store.NewTable[[]homeassistant.Waiting](a.db, "mqtt-waiting")
	o.Serve = serveBroker(o.Base, homeassistant.ClientID(a.id), a.log)
	o.Restart = a.askRestart
	a.mirror, err = homeassistant.New(o)
	return err
}

// mqttPart is the condition of the mirror.
func (a *app) mqttPart() admin.Part {
	s := a.mirror.Status()
	part := admin.Part{Name: "mqtt", OK: s.Connected, Since: s.Since, Note: "tells the broker at " + s.Broker}
	switch {
	case s.Broker == "none":
		part.OK, part.Note = true, "turned off by mqtt.broker"
	case s.Connecting:
		part.OK, part.Note = true, "is connecting to the broker at "+s.Broker
	case !s.Connected:
		part.Note = s.Cause
	case s.Broker == embedded:
		part.Note = "is the broker itself, on " + a.config.MQTT.Listen
	}
	if s.Ends > 0 {
		part.Note += fmt.Sprintf("; the embedded broker has ended %d times since perch was started, last at %s: %s", s.Ends, s.Ended.Format(time.DateTime), s.Why)
	}
	return part
}

// mqtt looks for the broker where no appliance runs that could tell.
func (d *examination) mqtt(ctx context.Context) {
	m := d.config.MQTT
	if d.status != nil || d.locked || m.Broker == "none" {
		return
	}
	o, err := m.options()
	if errors.Is(err, fs.ErrPermission) {
		d.unread("mqtt")
		return
	}
	if err == nil {
		o.ID, o.Password = d.identity(), cmp.Or(o.Password, "of the doctor's look")
		var mirror *homeassistant.Mirror
		if mirror, err = homeassistant.New(o); err == nil {
			err = mirror.Try(ctx)
		}
	}
	fine := "the broker lets us in"
	if m.Broker == embedded {
		fine = m.Listen + " is free for the embedded broker"
	}
	d.add("mqtt", err, fine)
}

// identity is the id of the appliance whose data this is, which tells its own
// words on the broker from another's.
func (d *examination) identity() string {
	if d.store != nil {
		if id, found, err := store.NewTable[string](d.store.DB, "appliance").Get("id"); err == nil && found {
			return id
		}
	}
	return "00000000"
}
