// Package appliance is everything that perch serve runs: its parts, the order in
// which they are made, run and end, and how well each of them does.
package appliance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"perch/agent"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/event"
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
	"perch/store"
	"perch/voice"
	"perch/voice/sounds"
)

// Appliance is the appliance. It is made with New, which opens everything that
// can fail, and runs until its context ends.
type Appliance struct {
	Config  *config.Config
	Log     *slog.Logger
	Data    string
	Id      string // of this appliance: 8 hex digits, kept
	Started time.Time
	version string    // of this program
	built   time.Time // this program

	Db      *store.DB
	Bus     *event.Bus
	board   *agent.Board
	Robots  *device.Registry
	Memory  *agent.Memory
	Notices *agent.Notices
	Timers  *agent.Timers
	herald  *agent.Herald
	Engines *engines
	Mind    *agent.Mind
	Talk    *robot.Server
	Records *robot.Records
	waiting *robot.Waiting
	ota     *ota.Service
	admin   *admin.Door
	metrics *admin.Metrics
	wyoming *wyoming.Server // nil where it is off
	At      net.Addr        // of that
	also    []mdns.Offer    // what is announced besides the robots' door
	Doors   *doors
	Mirror  *homeassistant.Mirror
	Senses  senses
	bridge  *bridge.Door
	restart chan struct{}

	behaviours *perception.Behaviours
	sounds     *sounds.Library
	skins      *skin.Door
	hooks      *hooks.Door
	vccp       *vccp.Door
	talks      *vccp.Talks // of coding agents
	Firmware   *ota.Firmware
	tokenKey   device.Key
	Characters *characters

	mdns   *mdns.Announcer // nil where nothing is announced
	silent string          // why not

	next Next
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

// New builds the appliance, from the bottom of the house up. Whatever was
// opened before an error is closed again.
func New(c *config.Config, o Options) (*Appliance, error) {
	a := &Appliance{Config: c, Log: o.Log, Data: o.Data, Started: time.Now(), version: o.Version, built: o.Built, next: o.Next, restart: make(chan struct{}, 1)}
	if err := a.build(o); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// build opens one part after the other and leaves off at the first error.
func (a *Appliance) build(o Options) error {
	if err := os.MkdirAll(a.Data, 0o750); err != nil {
		return fmt.Errorf("the data directory cannot be made: %w; name another with --data", err)
	}
	if err := Directory(a.Data, a.version, a.Log).Finish(); err != nil {
		return err
	}
	db, err := openDatabase(a.Data, o.NewDatabase, a.Log)
	if err != nil {
		return err
	}
	a.Db = db
	if err := a.keep(); err != nil {
		return err
	}
	c := a.Config
	zone, err := c.Zone()
	if err != nil {
		return err
	}
	a.Bus = event.NewBusFor(a.Robots.Trusts)
	a.board = agent.NewBoard()
	a.Senses = senses{perception.NewIntake(a.Bus, a.Robots, a.Log), perception.NewBoard(store.NewTable[perception.State](a.Db, "perception"))}
	for _, id := range a.Senses.Board.Known() { // from before, when strangers' senses were kept
		if !a.Robots.Trusts(id) {
			a.Senses.Board.Forget(id)
		}
	}
	if err := a.newBehaviours(zone); err != nil {
		return err
	}
	a.herald = agent.NewHerald(agent.HeraldOptions{Notices: a.Notices, Timers: a.Timers, Bus: a.Bus, Log: a.Log})
	if err := a.think(o.Recognizers); err != nil {
		return err
	}
	if a.Characters, err = newCharacters(c, a.Robots, a.Data, a.Log); err != nil {
		return err
	}
	a.Mind.Complete(a.Characters.Complete)
	a.sounds = sounds.Open(a.soundsDirectory())
	a.Talk = robot.NewServer(robot.Options{
		Robots: a.Robots, Bus: a.Bus, Senses: a.Senses.intake, Mind: a.Mind, Records: a.Records, Sounds: a.sounds,
		Waiting: a.waiting,
		Greet:   c.Robots.Greeting, UserTools: c.Robots.UserTools, PublicURL: c.PublicURL,
		Ears: a.Engines.recognizers, Mouth: a.Engines.synthesizers, Speech: a.Characters.house.Speech, Character: a.Characters.Of, Phrases: a.Engines.Book.Phrase,
		Patience: c.Patience(), Zone: zone, Idle: time.Duration(c.Robots.Idle), Silence: time.Duration(c.Speech.Silence), Version: a.version, Log: a.Log,
	})
	if err := a.openFirmware(zone); err != nil {
		return err
	}
	a.ota = ota.New(ota.Options{Firmware: a.Firmware, Robots: a.Residents(), Bus: a.Bus, Zone: zone, PublicURL: c.PublicURL, Framing: c.Robots.Framing, Earliest: earliest(a.built), Log: a.Log})
	if err := errors.Join(a.newBridge(zone), a.newSkins(zone)); err != nil {
		return err
	}
	shown := admin.Options{
		Robots: a.Residents(), Talk: a.movers(), Herald: a.herald, Memory: a.Memory, Notices: a.Notices, Board: a.board, Bus: a.Bus, Senses: a.Senses,
		Questions: asked{a.hooks, a.Talk}, Conversations: a.Mind,
		Turns: func(n int) any { return a.Records.Turns(n) }, Parts: a.Parts, Counters: a.counters(), Gauges: a.gauges(), Firmware: a.Firmware, Refused: a.ota.Refused,
		Archives: newArchives(Directory(a.Data, a.version, a.Log), a.Db, a.askRestart),
		Version:  a.version, ID: a.Id, Started: a.Started,
	}
	a.admin, a.metrics = admin.New(shown), admin.NewMetrics(shown)
	if err := a.Db.Readable(); err != nil { // what was read so far may be a part of it
		return err
	}
	if a.Doors, err = openDoors(a); err != nil {
		return err
	}
	if err := a.openWyoming(zone); err != nil {
		return err
	}
	if err := a.newMirror(); err != nil {
		return err
	}
	return a.newAnnouncer()
}

func (a *Appliance) Residents() residents {
	return residents{a.Robots, a.Talk, a.Senses.Board, a.Mind, a.Memory, a.Bus, a.Characters}
}

// think makes the engines, and the mind of its brains.
func (a *Appliance) think(ears voice.Recognizers) (err error) {
	a.talks = vccp.NewTalks(a.Log)
	house := BrainOptions{a.Memory, a.Timers, a.herald, a.Senses, a.Robots.Trusts, a.lend}
	tell := func(e event.Event) { a.Bus.Publish("", "", e) }
	if a.Engines, err = NewEngines(a.Config, house, a.findWyoming, tell, a.Log); err != nil {
		return err
	}
	if ears != nil {
		a.Engines.recognizers, a.Engines.sphinx = ears, nil
	}
	a.Mind = agent.NewMind(a.Engines.brains, a.Memory, a.Bus, a.Log)
	a.Mind.Keep(agent.NewHistories(store.NewTable[agent.Conversation](a.Db, "conversations")))
	return nil
}

// keep opens what is remembered.
func (a *Appliance) keep() error {
	key, err := Secret(a.Data, "token-key", a.Log)
	if err != nil {
		return err
	}
	identity := store.NewTable[string](a.Db, "appliance")
	id, found, err := identity.Get("id")
	if err != nil {
		return err
	}
	if !found {
		id = newID()
		// The time first: without it an appliance whose power is cut in between
		// would adopt nobody in its first hour.
		err := errors.Join(identity.Put("installed", a.Started.UTC().Format(time.RFC3339)), identity.Put("id", id))
		if err != nil {
			return err
		}
	}
	a.Id = id
	installed, _, err := identity.Get("installed")
	if err != nil {
		return err
	}
	a.tokenKey = device.Key(key)
	a.Robots = device.NewRegistry(a.tokenKey, device.Adoption(a.Config.Adoption), store.NewTable[device.Robot](a.Db, "robots"))
	if at, err := time.Parse(time.RFC3339, installed); err == nil && !at.After(time.Now()) && a.Db.Salvaged() == nil {
		a.Robots.Welcome(at.Add(device.WelcomeLasts))
	}
	if n := a.Robots.Strangers(); n > 0 {
		a.Log.Warn("robots that nobody has adopted may talk, and nothing else; perch devices lists them", "count", n)
	}
	a.Memory = agent.NewMemory(store.NewTable[agent.Entry](a.Db, "memory"))
	a.Notices = agent.NewNotices(store.NewTable[agent.Notice](a.Db, "notifications"))
	a.Timers = agent.NewTimers(store.NewTable[agent.Timer](a.Db, "timers"), nil)
	a.Records = robot.NewRecords(store.NewTable[robot.SessionRecord](a.Db, "sessions"),
		store.NewTable[robot.TurnRecord](a.Db, "turns"), a.Config.Robots.KeepTurns)
	a.waiting = robot.NewWaiting(store.NewTable[[]robot.Command](a.Db, "waiting"))
	return nil
}

// openWyoming makes the appliance a Wyoming server, where it is to be one. What
// it offers is its own: the engines in this process, and the mind. An engine
// that is a Wyoming server itself is for its owner to name to Home Assistant.
func (a *Appliance) openWyoming(zone *time.Location) error {
	address := a.Config.Wyoming.Listen
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return ListenError(address, "wyoming.listen", err)
	}
	o := wyoming.Options{Listen: []net.Listener{l}, Mind: a.Mind, Language: a.Config.Language, Zone: zone,
		Sorry: a.Engines.Book.Phrase("failed"), Name: a.Config.Name, ID: a.Id, Version: a.version, Log: a.Log}
	if len(a.Engines.sphinx) > 0 {
		o.Ears = a.Engines.sphinx[0]
	}
	if len(a.Engines.espeak) > 0 {
		o.Mouth = a.Engines.espeak[0]
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

// findWyoming looks for Wyoming servers on the network that are not this one.
func (a *Appliance) findWyoming(ctx context.Context) ([]string, error) {
	own := mdns.Options{Name: a.Config.Name, ID: a.Id}.Instance()
	return mdns.Search{Type: mdns.Wyoming, Except: []string{own}, Interfaces: a.Config.MDNS.Interfaces}.Targets(ctx)
}

// ErrRestart ends a run after which another is wanted.
var ErrRestart = errors.New("a restart was asked for")

// askRestart has Run begin anew.
func (a *Appliance) askRestart() {
	select {
	case a.restart <- struct{}{}:
	default: // it has begun
	}
}

// Run serves until ctx ends, and then stops in the order that lets everybody
// know: the name is withdrawn first, robots are hung up on, what waits is
// written. It returns ErrRestart where somebody wants it to begin anew.
func (a *Appliance) Run(ctx context.Context) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { a.board.Run(inner, a.Bus.ReadFrom(1)) })
	wg.Go(func() {
		if err := a.herald.Run(inner, a.Talk); err != nil {
			a.Log.Error("notifications and timers are no longer told", "err", err)
		}
	})
	wg.Go(func() { a.Senses.Board.Run(inner, a.Bus.ReadFrom(1)) })
	wg.Go(func() { a.behaviours.Run(inner, a.Talk) })
	wg.Go(func() { a.skins.Run(inner) })
	wg.Go(func() { a.hooks.Run(inner) })
	wg.Go(func() { a.vccp.Run(inner) })
	wg.Go(func() { a.warm(inner) })
	wg.Go(func() { a.watch(inner) })
	wg.Go(func() { a.Engines.tend(inner) })
	wg.Go(func() { a.metrics.Run(inner, a.Bus.ReadFrom(1)) })
	wg.Go(func() {
		if err := a.Mirror.Run(inner); err != nil {
			a.Log.Error("nothing is told over MQTT any more", "err", err)
		}
	})
	failed := make(chan error, 2)
	wg.Go(func() { failed <- a.Doors.serve() })
	if a.wyoming != nil {
		wg.Go(func() {
			if err := a.wyoming.Run(inner); err != nil {
				failed <- err
			}
		})
	}
	var announcing sync.WaitGroup
	announceCtx, withdraw := context.WithCancel(inner)
	defer withdraw()
	if a.mdns != nil {
		announcing.Go(func() {
			if err := a.mdns.Run(announceCtx); err != nil {
				a.Log.Error("the appliance is not announced on the network", "err", err)
			}
		})
	}
	manager := systemd(a.Log)
	wg.Go(func() { manager.watch(inner, a.alive) })
	a.Log.Info("perch is ready", "version", a.version, "listen", a.Doors.Addresses(), "data", a.Data)
	manager.tell(daemon.SdNotifyReady)
	if a.next.Out != nil {
		wg.Go(func() { a.tellNext(inner) })
	}
	var err error
	select {
	case <-ctx.Done():
	case <-a.restart:
		err = ErrRestart
	case err = <-failed:
		failed <- nil // for nobody; the channel has room again
	}
	if !errors.Is(err, ErrRestart) { // then it goes on as the same process
		manager.tell(daemon.SdNotifyStopping)
	}
	withdraw()
	announcing.Wait()
	a.vccp.Close() // its streams have no end of their own
	a.talks.Close()
	a.Doors.stop()
	if a.wyoming != nil {
		a.wyoming.Close()
	}
	a.Talk.Close()
	a.Bus.Close()
	stop()
	wg.Wait()
	return err
}

// warm loads the recognizer and has what the appliance says by itself made when
// the first robot comes: an appliance nobody talks to stays small, and the
// first utterance need not wait. Whenever a robot begins to listen, what the
// turn to come will use is made ready.
func (a *Appliance) warm(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	loaded, warmed := false, time.Time{}
	a.Bus.ReadFrom(1).Each(ctx, func(e event.Envelope) {
		switch e.Event.(type) {
		case event.RobotSeen, event.RobotOnline:
			if !loaded {
				loaded = true
				wg.Go(func() { a.load(ctx) })
			}
		case event.ListeningStarted:
			if now := time.Now(); now.Sub(warmed) >= warmEvery {
				warmed = now
				wg.Go(func() { a.Engines.warm(ctx) })
			}
		}
	})
}

func (a *Appliance) load(ctx context.Context) {
	a.Talk.Prepare()
	for _, engine := range a.Engines.sphinx {
		if err := engine.Load(ctx); err != nil && ctx.Err() == nil {
			a.Log.Error("the recognizer cannot be loaded; robots will not be understood", "err", err)
		}
	}
}

// Close releases what New opened. Run, where it was called, has returned.
func (a *Appliance) Close() {
	if a.vccp != nil {
		a.vccp.Close()
	}
	if a.talks != nil {
		a.talks.Close()
	}
	if a.Doors != nil {
		a.Doors.stop()
	}
	if a.wyoming != nil {
		a.wyoming.Close()
	}
	if a.Talk != nil {
		a.Talk.Close()
	}
	if a.Engines != nil {
		a.Engines.Close()
	}
	if a.Bus != nil {
		a.Bus.Close()
	}
	if a.Db != nil {
		if err := a.Db.Close(); err != nil {
			a.Log.Error("the last changes may not have been kept", "err", err)
		}
	}
}

func note(err error) string {
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
