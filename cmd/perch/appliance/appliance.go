// Package appliance is everything that perch serve runs: its parts, the order in
// which they are made, run and end, and how well each of them does.
package appliance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"time"

	"perch/cmd/perch/config"
	"perch/gateway/admin"
	"perch/gateway/bridge"
	"perch/gateway/homeassistant"
	"perch/gateway/hooks"
	"perch/gateway/mdns"
	"perch/gateway/robot"
	"perch/gateway/skin"
	"perch/gateway/vccp"
	"perch/gateway/wyoming"
	"perch/ota"
	"perch/perception"
	"perch/voice"
)

// Appliance is everything that perch serve runs. It is made with New, which opens
// everything that can fail, and runs until its context ends.
type Appliance struct {
	core
	*gateways
	*announcement

	restart chan struct{} // has an element once a restart was asked for
	next    Next
}

// core is everything below the gateways. A gateway is made of it, and of what else
// its constructor names.
type core struct {
	basics
	*kept
	*agents
	*robots
}

// basics are the values that every part of one run is given.
type basics struct {
	Config  *config.Config
	Log     *slog.Logger
	Data    string // the data directory
	Started time.Time
	version string // of this program
	built   time.Time
	zone    *time.Location // of the household
}

// robots are what robots talk with, and what acts on them by itself.
type robots struct {
	Talk       *robot.Server
	behaviours *perception.Behaviours
	Firmware   *ota.Firmware
	ota        *ota.Service
}

// gateways are the doors to everybody else.
type gateways struct {
	admin   *admin.Door
	metrics *admin.Metrics
	bridge  *bridge.Door
	skins   *skin.Door
	hooks   *hooks.Door
	vccp    *vccp.Door
	Mirror  *homeassistant.Mirror
	Doors   *doors          // the listeners, and what is served behind each
	wyoming *wyoming.Server // nil where it is off
	At      net.Addr        // of the Wyoming server
}

// Options are what a start is given besides the configuration.
type Options struct {
	Data        string
	Log         *slog.Logger
	Recognizers voice.Recognizers // instead of those configured, to measure all the rest; else nil

	Version string    // of this program
	Built   time.Time // when it was built
	Next    Next      // where to write what to do next; may be empty

	NewDatabase bool // an empty one is begun, although there was another
}

// New builds the appliance, each part after those that it needs. Whatever was
// opened before an error is closed again.
func New(c *config.Config, o Options) (*Appliance, error) {
	zone, err := c.Zone()
	if err != nil {
		return nil, err
	}
	b := basics{Config: c, Log: o.Log, Data: o.Data, Started: time.Now(), version: o.Version, built: o.Built, zone: zone}
	a := &Appliance{core: core{basics: b, robots: &robots{}}, gateways: &gateways{}, restart: make(chan struct{}, 1), next: o.Next}
	if err := a.build(o); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// build opens one part after the other and leaves off at the first error.
func (a *Appliance) build(o Options) (err error) {
	if a.kept, err = openKept(a.basics, o.NewDatabase); err != nil {
		return err
	}
	a.announcement = &announcement{of: a.basics, id: a.ID}
	if a.agents, err = newAgents(a.basics, a.kept, a.findWyoming, a.lendTools, o.Recognizers); err != nil {
		return err
	}
	for _, next := range []func() error{a.newBehaviours, a.newRobots, a.openGateways, a.openWyoming, a.openMirror, a.announcement.open} {
		if err := next(); err != nil {
			return err
		}
	}
	return nil
}

// openGateways makes the doors, and opens the listeners for them.
func (a *Appliance) openGateways() (err error) {
	if a.bridge, err = newBridge(a.core); err != nil {
		return err
	}
	if err := a.newSkins(); err != nil {
		return err
	}
	a.newAdmin()
	if err := a.DB.Readable(); err != nil { // what was read so far may be a part of it
		return err
	}
	a.Doors, err = openDoors(a)
	a.announcement.doors = a.Doors
	return err
}

// openMirror connects the appliance to Home Assistant.
func (a *Appliance) openMirror() (err error) {
	a.Mirror, err = newMirror(a.core, a.hooks, a.announcement, a.askRestart)
	return err
}

// newRobots makes the server of robots, and the service where they check in.
func (a core) newRobots() error {
	c := a.Config
	a.Talk = robot.NewServer(robot.Options{
		Robots: a.Robots, Bus: a.Bus, Senses: a.Senses.intake, Mind: a.Mind, Records: a.Records, Sounds: a.sounds,
		Commands: a.waiting,
		Greet:    c.Robots.Greeting, UserTools: c.Robots.UserTools, PublicURL: c.PublicURL,
		Recognizer: a.Engines.recognizers, Synthesizer: a.Engines.synthesizers, Speech: a.Characters.common.Speech, Character: a.Characters.Of,
		Phrases:  a.Engines.Book.Phrase,
		Patience: c.Patience(), Zone: a.zone, Idle: time.Duration(c.Robots.Idle), Silence: time.Duration(c.Speech.Silence), Version: a.version,
		Log: a.Log,
	})
	if err := a.openFirmware(); err != nil {
		return err
	}
	a.ota = ota.New(ota.Options{Firmware: a.Firmware, Robots: a.OwnedRobots(), Bus: a.Bus, Zone: a.zone, PublicURL: c.PublicURL,
		Framing: c.Robots.Framing, Earliest: earliest(a.built), Log: a.Log})
	return nil
}

// newAdmin makes the owner's door.
func (a *Appliance) newAdmin() {
	shown := admin.Options{
		Robots: a.OwnedRobots(), Talk: a.control(), Notify: a.notifier.Notify, Memory: a.Memory, Notices: a.Notices.Open, Board: a.board, Bus: a.Bus,
		Senses:    a.Senses.Senses,
		Questions: questions{a.hooks, a.Talk}, ForgetConversation: a.Mind.Forget,
		Turns: func(n int) any { return a.Records.Turns(n) }, Parts: a.Parts, Counters: a.counters(), Gauges: a.gauges(), Firmware: a.Firmware,
		Refused:  a.ota.Refused,
		Archives: &archives{dir: Directory(a.Data, a.version, a.Log), db: a.DB, restart: a.askRestart, busy: make(chan struct{}, 1)},
		Version:  a.version, ID: a.ID, Started: a.Started,
	}
	a.admin, a.metrics = admin.New(shown), admin.NewMetrics(shown)
}

// OwnedRobots are the robots as their owner adopts and forgets them.
func (a core) OwnedRobots() ownedRobots {
	return ownedRobots{a.Robots, a.Talk, a.Senses.Board, a.Mind, a.Memory, a.Bus, a.Characters}
}

// openWyoming makes the appliance a Wyoming server, where it is to be one. What
// it offers is its own: the engines in this process, and the agent. An engine
// that is a Wyoming server itself is for its owner to name to Home Assistant.
func (a *Appliance) openWyoming() error {
	address := a.Config.Wyoming.Listen
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return ListenError(address, "wyoming.listen", err)
	}
	o := wyoming.Options{Listen: []net.Listener{l}, Mind: a.Mind, Language: a.Config.Language, Zone: a.zone,
		Sorry: a.Engines.Book.Phrase("failed"), Name: a.Config.Name, ID: a.ID, Version: a.version, Log: a.Log}
	if len(a.Engines.sphinx) > 0 {
		o.Recognizer = a.Engines.sphinx[0]
	}
	if len(a.Engines.espeak) > 0 {
		o.Synthesizer = a.Engines.espeak[0]
	}
	if a.wyoming, err = wyoming.New(o); err != nil {
		return errors.Join(err, l.Close())
	}
	a.At = l.Addr()
	if port, ok := reachable(a.At); ok {
		a.also = append(a.also, mdns.Offer{Type: mdns.Wyoming, Port: port})
	}
	return nil
}

// serveWyoming serves until ctx ends.
func (a *Appliance) serveWyoming(ctx context.Context) error {
	if a.wyoming == nil {
		return nil
	}
	return a.wyoming.Run(ctx)
}

func (a *Appliance) closeWyoming() {
	if a.wyoming != nil {
		a.wyoming.Close()
	}
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
	a.closeWyoming()
	if a.Talk != nil {
		a.Talk.Close()
	}
	if a.agents != nil {
		a.agents.close()
	}
	if a.kept != nil {
		a.kept.close(a.Log)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// newID is a new appliance's id: 8 hex digits.
func newID() string {
	id := make([]byte, 4)
	rand.Read(id) //nolint:errcheck // never fails, by its documentation
	return hex.EncodeToString(id)
}
