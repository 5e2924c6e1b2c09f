// Package appliance is everything that perch serve runs: its parts, the order in
// which they are made, run and end, and how well each of them does.
package appliance

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/agent/action"
	"perch/agent/diary"
	"perch/agent/feed"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/gateway/admin"
	"perch/gateway/aituber"
	"perch/gateway/bridge"
	"perch/gateway/character"
	"perch/gateway/homeassistant"
	"perch/gateway/hooks"
	"perch/gateway/llmvtuber"
	"perch/gateway/mdns"
	"perch/gateway/openclaw"
	"perch/gateway/relay"
	"perch/gateway/robot"
	"perch/gateway/skin"
	"perch/gateway/vccp"
	"perch/gateway/web"
	"perch/gateway/wyoming"
	"perch/language"
	"perch/ota"
	"perch/perception"
	"perch/voice"
)

// Appliance is everything that perch serve runs. It is made with New, which opens
// everything that can fail, and runs until its context ends.
type Appliance struct {
	basics
	*kept
	*agents
	*robots
	*gateways

	Diary  *diary.Diary
	Signer diary.Key // signs the diary, and what characters sign

	restart  chan struct{} // has an element once a restart was asked for
	applying sync.Mutex    // one change of the configuration at a time
	ending   bool          // no more changes are followed
}

// basics are the values that every part of one run is given.
type basics struct {
	Options
	config  *atomic.Pointer[config.Config]
	Started time.Time
	zone    *time.Location // of the household
}

// Config is the configuration that is followed: see Apply. It is not changed.
func (b basics) Config() *config.Config { return b.config.Load() }

// robots are what robots talk with, and what acts on them by itself.
type robots struct {
	Talk       *robot.Server
	behaviours *perception.Behaviours
	gestures   perception.Gestures
	Firmware   *ota.Firmware
	ota        *ota.Service
	robotMQTT  robotMQTT
}

// gateways are the doors to everybody else.
type gateways struct {
	admin          *admin.Door
	metrics        *admin.Metrics
	bridge         *bridge.Door
	locks          *locks
	turnsElsewhere *bridge.Log    // that the bridge was told of
	feed           *feed.Feed     // of all that shows agents
	words          *agent.Words   // for faces
	loudness       voice.Loudness // of all that is spoken
	skins          *skin.Door
	relays         *relay.Relays
	openClaw       *openclaw.Door // nil where it is off
	actions        *action.Log

	llmvtuber *llmvtuber.Door
	aituber   *aituber.Door

	character     *character.Door // what characters do and are
	passports     *passports
	web           *web.Door // nil where it is off
	hooks         *hooks.Door
	vccp          *vccp.Door
	Mirror        *homeassistant.Mirror
	homeAssistant *homeAssistant  // nil where this is no app of Home Assistant
	Doors         *doors          // the listeners, and what is served behind each
	wyoming       *wyoming.Server // nil where it is off
	At            net.Addr        // of the Wyoming server

	announcer   *mdns.Announcer // nil where nothing is announced
	silent      string          // why not
	wyomingPort int             // 0 where the network does not reach it
}

// Options are what a start is given besides the configuration.
type Options struct {
	Data        string // the data directory
	Log         *slog.Logger
	Recognizers voice.Recognizers // instead of those configured, to measure all the rest; else nil

	Version string    // of this program
	Built   time.Time // when it was built
	Next    Next      // where to write what to do next; may be empty

	NewDatabase bool // an empty one is begun, although there was another

	Logs    *Logs                                          // what Log has written; nil keeps nothing
	Overlay *config.Overlay                                // shows and changes the configuration; nil is none
	Doctor  func(context.Context) ([]admin.Finding, error) // looks at all of this; nil is none
}

// New builds the appliance, each part after those that it needs. Whatever was
// opened before an error is closed again.
func New(c *config.Config, o Options) (*Appliance, error) {
	zone, err := c.Zone()
	if err != nil {
		return nil, err
	}
	a := &Appliance{basics: basics{o, &atomic.Pointer[config.Config]{}, time.Now(), zone}, robots: &robots{}, gateways: &gateways{}, restart: make(chan struct{}, 1)}
	a.config.Store(c)
	for _, next := range []func() error{a.openKept, a.newAgents, a.newDiary, a.newBehaviours, a.newRobots, a.newBridge, a.newSkins, a.newAvatars,
		a.newRelays, a.newCharacterDoor, a.openHomeAssistant, a.openGateways, a.openWyoming, a.newMirror, a.openAnnouncer} {
		if err := next(); err != nil {
			a.Close()
			return nil, err
		}
	}
	return a, nil
}

// openGateways makes the owner's door, and opens the listeners for all doors.
func (a *Appliance) openGateways() error {
	a.newAdmin()
	if err := a.DB.Readable(); err != nil { // what was read so far may be a part of it
		return err
	}
	a.Doors = &doors{log: a.Log}
	return a.Doors.open(a)
}

// talkOptions are those of robots' talks.
func (a *Appliance) talkOptions(c *config.Config, e *engines) robot.Options {
	return robot.Options{
		Robots: a.Robots, Bus: a.Bus, Senses: a.Senses.intake, Mind: a.Mind, Records: a.Records, Sounds: a.sounds,
		Commands: a.waiting,
		Greet:    c.Robots.Greeting, UserTools: c.Robots.UserTools, PublicURL: c.PublicURL,
		Recognizer: e.recognizers, Synthesizer: e.synthesizers, Hold: e.hold, Voice: [...]*group{e.groups[understanding], e.groups[speaking]},
		Speech: a.Characters.Speech(), Character: a.Characters.Of,
		Phrases: e.Phrase, Languages: c.Language.List(),
		Settled:  settled(e.Book),
		Loudness: &a.loudness,
		Quiet:    a.quiet,
		Waits:    a.Notices.Waits,
		Patience: c.Patience(), Zone: a.zone, Idle: time.Duration(c.Robots.Idle), Silence: time.Duration(c.Speech.Silence), Version: a.Version,
		Log: a.Log,
	}
}

// firstLanguage is the household's.
func (a *Appliance) firstLanguage() string { return a.Config().Language.First() }

// quiet reports whether it is within the household's quiet hours.
func (a *Appliance) quiet(now time.Time) bool {
	return a.Config().Behaviours.Quiet.Hours.Contains(now.In(a.zone))
}

// newRobots makes the server of robots, and the service where they check in.
func (a *Appliance) newRobots() error {
	c := a.Config()
	a.Talk = robot.NewServer(a.talkOptions(c, a.engines.get()))
	if err := a.openFirmware(); err != nil {
		return err
	}
	a.ota = ota.New(ota.Options{Firmware: a.Firmware, Robots: a.OwnedRobots(), Bus: a.Bus, Zone: a.zone, PublicURL: c.PublicURL,
		Transport: device.Transport(c.Robots.Transport), MQTT: a.openRobotMQTT(),
		Framing: c.Robots.Framing, Earliest: earliest(a.Built), Language: a.firstLanguage, Log: a.Log})
	return nil
}

// newAdmin makes the owner's door.
func (a *Appliance) newAdmin() {
	shown := admin.Options{
		Robots: a.OwnedRobots(), Talk: a.control(), Notify: a.notifier.Notify, Memory: a.Memory, Timers: a.Timers, Notices: a.Notices.Open,
		Acknowledge: a.notifier.Acknowledge, Engines: tries{&a.engines, a.Characters.Speech, a.zone}, Board: a.board, Bus: a.Bus,
		Gestures: a.gestures,
		Senses:   a.Senses.Senses, Characters: casting{a.Characters, a.passports, a.Skills.Library, a.Bus},
		Questions: questions{a.hooks, a.Talk}, ForgetConversation: a.Mind.Forget, Phrase: a.phraseOf,
		Diary:  func(n int) any { return a.Diary.Newest(n) },
		Verify: func() (any, error) { return a.Diary.Verify() },
		Turns:  func(n int) any { return a.Records.Turns(n) }, Parts: a.Parts, Counters: a.counters, Gauges: a.gauges(), Firmware: a.Firmware,
		Refused: a.ota.Refused, Connections: a.connections, Find: a.newFinder().find,
		Archives: &archives{dir: Directory(a.Data, a.Version, a.Log), db: a.DB, restart: a.askRestart},
		Version:  a.Version, ID: a.ID, Started: a.Started,
		Doctor: a.Doctor, Restart: a.askRestart,
	}
	if a.Logs != nil {
		shown.Logs = a.Logs
	}
	if a.Overlay != nil {
		shown.Settings = a.newSettings()
	}
	a.admin, a.metrics = admin.New(shown), admin.NewMetrics(shown)
}

// OwnedRobots are the robots as their owner adopts and forgets them.
func (a *Appliance) OwnedRobots() ownedRobots {
	return ownedRobots{a.Robots, a.Talk, a.Senses.Board, a.Mind, a.Memory, a.Bus, a.Characters}
}

// openWyoming makes the appliance a Wyoming server, where it is to be one. What
// it offers is its own: the engines in this process, and the agent. An engine
// that is a Wyoming server itself is for its owner to name to Home Assistant.
func (a *Appliance) openWyoming() error {
	address := a.Config().Wyoming.Listen
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return ListenError(address, "wyoming.listen", err)
	}
	o := a.wyomingOptions(a.Config(), a.engines.get())
	o.Listen = []net.Listener{l}
	if a.wyoming, err = wyoming.New(o); err != nil {
		return errors.Join(err, l.Close())
	}
	a.At = l.Addr()
	if port, ok := reachable(a.At); ok {
		a.wyomingPort = port
	}
	return nil
}

// wyomingOptions are what the Wyoming server offers.
func (a *Appliance) wyomingOptions(c *config.Config, e *engines) wyoming.Options {
	o := wyoming.Options{Mind: a.Mind, Languages: c.Language.List(), Zone: a.zone, Hold: e.hold,
		Phrases: e.Phrase, Name: c.Name, ID: a.ID, Version: a.Version, Log: a.Log}
	for _, tag := range o.Languages {
		if known, _ := language.Match(tag); known == language.English {
			o.Heard = append(o.Heard, tag)
		}
	}
	if len(e.sphinx) > 0 && len(o.Heard) > 0 { // it knows no other language
		o.Recognizer = e.sphinx[0]
	}
	if len(e.espeak) > 0 {
		o.Synthesizer = e.espeak[0]
	}
	return o
}

// ErrRestart ends a run after which another is wanted.
var ErrRestart = errors.New("a restart was asked for")

// askRestart makes Run return ErrRestart.
func (a *Appliance) askRestart() {
	select {
	case a.restart <- struct{}{}:
	default: // it has begun
	}
}

// Close releases what New opened. Run, where it was called, has returned.
func (a *Appliance) Close() {
	if a.vccp != nil {
		a.vccp.Close()
	}
	if a.agents != nil {
		a.talks.Close()
	}
	if a.Doors != nil {
		a.Doors.stop()
	}
	if a.wyoming != nil {
		a.wyoming.Close()
	}
	if a.gateways != nil && a.homeAssistant != nil {
		a.homeAssistant.client.Close()
		a.homeAssistant.core.Close()
	}
	if a.Talk != nil {
		a.Talk.Close()
	}
	if a.agents != nil {
		a.engines.close()
		if a.Skills != nil {
			a.Skills.close()
		}
		a.Bus.Close()
	}
	if a.kept != nil {
		if err := a.DB.Close(); err != nil {
			a.Log.Error("the last changes may not have been stored", "err", err)
		}
	}
	if a.Firmware != nil {
		a.Firmware.Close() // last, because a card that fails may make it wait
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
