package appliance

import (
	"fmt"
	"path/filepath"
	"time"

	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/engines"
	"perch/cmd/perch/hassapp"
	"perch/cmd/perch/viewers"
	"perch/device"
	"perch/gateway/bridge"
	"perch/gateway/homeassistant"
	"perch/gateway/robot"
	"perch/gateway/wyoming"
	"perch/ota"
	"perch/store"
	"perch/voice"
	"perch/voice/sounds"
)

// newPrograms makes the APIs for other programs: programs that show agents, clients of the bridge
// API, Wyoming clients, and Home Assistant.
func (a *Appliance) newPrograms(c *config.Config) (err error) {
	a.viewers, err = viewers.New(viewers.Options{Config: a.Config, Version: a.options.Version, DB: a.DB, Registry: a.Robots, Robots: a.control,
		Bus: a.Bus, Board: a.board, Senses: a.Senses, Mind: a.Agents.Mind, Memory: a.Memory, Skills: a.Agents.Skills, Notices: a.Notices, Notifier: a.Agents.Notifier,
		Characters: a.Agents.Characters, Passports: a.Agents.Passports, Sentiment: a.Agents.Sentiment, Gestures: a.gestures, Loudness: &a.loudness,
		Engines: a.Agents.Engines.Engines(), Speech: a.Agents.Characters.Speech(), Quiet: a.isQuiet, SkinsToken: a.locks.SkinsToken, Network: a.network,
		Zone: a.zone, Log: a.Log})
	if err != nil {
		return err
	}
	a.closers = append(a.closers, a.viewers.Close)
	a.network.SetOffers(a.viewers.Offers)
	root, err := filepath.Abs(datadir.Sounds(a.Data))
	if err != nil {
		return fmt.Errorf("find the directory of sounds: %w", err)
	}
	a.bridgeTurns = bridge.NewLog(store.NewTable[bridge.Turn](a.DB, "bridge-turns"), c.Robots.KeepTurns)
	e := a.Agents.Engines.Engines()
	o := a.bridgeOptions(c, e)
	o.Root = root
	a.bridge = bridge.New(o)
	if a.wyomingListener != nil {
		o := a.wyomingOptions(c, e)
		o.Listen = a.wyomingListener
		if a.wyoming, err = wyoming.New(o); err != nil {
			return err
		}
		a.closers = append(a.closers, a.wyoming.Close)
	}
	return a.newMirror(c)
}

// bridgeOptions returns the options of the bridge API. Apply replaces them.
func (a *Appliance) bridgeOptions(c *config.Config, e *engines.Set) bridge.Options {
	return bridge.Options{
		Find: a.Robots.Resolve, Talk: a.control, Mind: a.Agents.Mind, Memory: a.Memory, Log: a.bridgeTurns, Spoken: func() []bridge.Turn { return bridgeTurnsOf(a.Records.Turns(a.Config().Robots.KeepTurns)) },
		Intake: a.intake, Senses: a.Senses, Board: a.board, Bus: a.Bus, Sounds: struct {
			*sounds.Library
			*robot.Server
		}{a.sounds, a.Talk},
		Language: a.Agents.Characters.Language, Zone: a.zone, Logger: a.Log,
		Deep: e.Deep, ShortTimeout: time.Duration(c.Bridge.TimeoutShort), LongTimeout: time.Duration(c.Bridge.TimeoutLong),
	}
}

// bridgeTurnsOf converts turns of robots to the form of package bridge.
func bridgeTurnsOf(records []robot.TurnRecord) (turns []bridge.Turn) {
	for _, t := range records {
		turns = append(turns, bridge.Turn{At: t.At, Session: t.Session, User: t.Heard, Assistant: t.Said})
	}
	return turns
}

// wyomingOptions returns the options of the Wyoming server, which offers the agent and the recognizers and
// synthesizers of Set.SharedEngines.
func (a *Appliance) wyomingOptions(c *config.Config, e *engines.Set) wyoming.Options {
	o := wyoming.Options{Mind: a.Agents.Mind, Languages: c.Language.List(), Zone: a.zone, Hold: e.Acquire,
		Phrases: e.Phrase, Name: c.Name, ID: a.ID, Version: a.options.Version, Log: a.Log}
	recognizers, synthesizers := e.SharedEngines()
	if len(recognizers) > 0 {
		o.Recognizer = recognizers
	}
	if len(synthesizers) > 0 {
		o.Synthesizer = synthesizers
	}
	if len(recognizers) == 1 && recognizers[0].Name() == "sphinx" { // the embedded recognizer supports English only
		if o.RecognizerLanguages = wyoming.English(o.Languages); len(o.RecognizerLanguages) == 0 {
			o.Recognizer = nil
		}
	}
	for kind, lent := range map[string]bool{"recognizer": o.Recognizer != nil, "synthesizer": o.Synthesizer != nil} {
		if !lent {
			a.Log.Warn("Home Assistant gets no "+kind+" over Wyoming: no configured one belongs to Perch and knows a language of the household",
				"languages", o.Languages)
		}
	}
	return o
}

// newMirror makes the connection to Home Assistant.
func (a *Appliance) newMirror(c *config.Config) error {
	o, err := c.MQTT.MirrorOptions()
	if err != nil {
		return err
	}
	if c.MQTT.GeneratesPassword() {
		if o.Password, err = datadir.Secret(a.Data, datadir.MQTTPasswordFile, a.Log); err != nil {
			return err
		}
	}
	o.ID, o.Version, o.URL, o.Host, o.Started, o.Log = a.ID, a.options.Version, a.network.URL, a.network.Host, a.Started, a.Log
	o.Away, o.ShareTranscripts = time.Duration(c.Robots.AwayAfter), c.Robots.ShareTranscripts
	o.Transport = device.Transport(c.Robots.Transport)
	o.Robots, o.Talk, o.Notifier, o.Board, o.Bus = a.OwnerRobots, a.control, a.Agents.Notifier, a.board, a.Bus
	o.Senses, o.Firmware, o.Questions, o.Notices = a.intake, updates{a.Firmware}, a.viewers.Questions, a.Notices
	o.Announced = store.NewTable[[]string](a.DB, "announced")
	o.WaitingCommands = store.NewTable[[]homeassistant.Waiting](a.DB, "mqtt-waiting")
	o.Gestures, o.Characters, o.Music = a.gestures, a.Agents.Characters, a.Talk.Music
	o.Brains = func() []string { return a.Config().BrainNames() }
	o.Voices = func() ([]voice.Named, bool) { return a.Agents.Engines.Engines().Voices() }
	o.Restart, o.Phrase = a.Restart, a.Agents.PhraseFor
	o.Startable = func() error { return a.admin.Startable() } // a.admin is set before the mirror runs
	o.FindBroker = a.homeAssistant.Broker
	a.Mirror, err = homeassistant.New(o)
	return err
}

// updates is the catalogue of firmware in the form that package homeassistant needs.
type updates struct{ *ota.Firmware }

// Update returns the installed firmware version of a robot and the latest one. Both are empty if the catalogue is
// empty.
func (u updates) Update(id device.ID) (installed, latest string) {
	if len(u.List()) == 0 {
		return "", ""
	}
	update := u.Firmware.Update(id)
	return update.Installed, update.Latest
}

// offers returns the services that the appliance offers to Home Assistant while it runs as an app
// (add-on) there.
func (a *Appliance) offers() (o hassapp.Offers) {
	if a.wyoming != nil {
		o.Wyoming = a.WyomingAddr.String()
	}
	s, c := a.Mirror.Status(), a.Config().MQTT
	if s.Connected && s.Broker == config.EmbeddedBroker { // while the mirror is not connected, another program may have taken the broker's port
		o.Broker = c.Listen
		o.User, o.Password = a.Mirror.Account()
	}
	o.Settled = s.Connected || c.Broker == "none"
	return o
}
