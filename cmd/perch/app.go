package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"perch/agent"
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

// app is the appliance. It is made with newApp, which opens everything that
// can fail, and runs until its context ends.
type app struct {
	config  *config
	log     *slog.Logger
	data    string
	id      string // of this appliance: 8 hex digits, kept
	started time.Time
	built   time.Time // this program

	db      *store.DB
	bus     *event.Bus
	board   *agent.Board
	robots  *device.Registry
	memory  *agent.Memory
	notices *agent.Notices
	timers  *agent.Timers
	herald  *agent.Herald
	engines *engines
	mind    *agent.Mind
	talk    *robot.Server
	records *robot.Records
	waiting *robot.CommandQueue
	ota     *ota.Service
	admin   *admin.Door
	metrics *admin.Metrics
	wyoming *wyoming.Server // nil where it is off
	at      net.Addr        // of that
	also    []mdns.Offer    // what is announced besides the robots' door
	doors   *doors
	mirror  *homeassistant.Mirror
	senses  senses
	bridge  *bridge.Door
	restart chan struct{}

	behaviours *perception.Behaviours
	sounds     *sounds.Library
	skins      *skin.Door
	hooks      *hooks.Door
	vccp       *vccp.Door
	talks      *vccp.Talks // of coding agents
	firmware   *ota.Firmware
	tokenKey   device.Key
	characters *characters

	mdns   *mdns.Announcer // nil where nothing is announced
	silent string          // why not

	ready func(context.Context) // is called once it serves; may be nil
}

// appOptions are what a start is given besides the configuration.
type appOptions struct {
	data string
	log  *slog.Logger
	ears voice.Recognizers // instead of those configured, to measure all the rest; else nil

	newDatabase bool // an empty one is begun, although there was another
}

// newApp builds the appliance, from the bottom of the house up. Whatever was
// opened before an error is closed again.
func newApp(c *config, o appOptions) (*app, error) {
	a := &app{config: c, log: o.log, data: o.data, started: time.Now(), built: builtAt(), restart: make(chan struct{}, 1)}
	if err := a.build(o); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// build opens one part after the other and leaves off at the first error.
func (a *app) build(o appOptions) error {
	if err := os.MkdirAll(a.data, 0o750); err != nil {
		return fmt.Errorf("the data directory cannot be made: %w; name another with --data", err)
	}
	if err := finishRestore(a.data, a.log); err != nil {
		return err
	}
	db, err := openDatabase(a.data, o.newDatabase, a.log)
	if err != nil {
		return err
	}
	a.db = db
	if err := a.keep(); err != nil {
		return err
	}
	c := a.config
	zone, err := c.zone()
	if err != nil {
		return err
	}
	a.bus = event.NewBusFor(a.robots.Trusts)
	a.board = agent.NewBoard()
	a.senses = senses{perception.NewIntake(a.bus, a.robots, a.log), perception.NewBoard(store.NewTable[perception.State](a.db, "perception"))}
	for _, id := range a.senses.board.Known() { // from before, when strangers' senses were kept
		if !a.robots.Trusts(id) {
			a.senses.board.Forget(id)
		}
	}
	if err := a.newBehaviours(zone); err != nil {
		return err
	}
	a.herald = agent.NewHerald(agent.HeraldOptions{Notices: a.notices, Timers: a.timers, Bus: a.bus, Log: a.log})
	if err := a.think(o.ears); err != nil {
		return err
	}
	if a.characters, err = newCharacters(c, a.robots, a.data, a.log); err != nil {
		return err
	}
	a.mind.Complete(a.characters.complete)
	a.sounds = sounds.Open(a.soundsDirectory())
	a.talk = robot.NewServer(robot.Options{
		Robots: a.robots, Bus: a.bus, Senses: a.senses.intake, Mind: a.mind, Records: a.records, Sounds: a.sounds,
		Commands: a.waiting,
		Greet:    c.Robots.Greeting, UserTools: c.Robots.UserTools, PublicURL: c.PublicURL,
		Recognizer: a.engines.ears, Synthesizer: a.engines.mouth, Speech: a.characters.house.Speech, Character: a.characters.of, Phrases: a.engines.book.Phrase,
		Patience: c.patience(), Zone: zone, Idle: time.Duration(c.Robots.Idle), Silence: time.Duration(c.Speech.Silence), Version: version, Log: a.log,
	})
	if err := a.openFirmware(zone); err != nil {
		return err
	}
	a.ota = ota.New(ota.Options{Firmware: a.firmware, Robots: a.residents(), Bus: a.bus, Zone: zone, PublicURL: c.PublicURL, Framing: c.Robots.Framing, Earliest: earliest(a.built), Log: a.log})
	if err := errors.Join(a.newBridge(zone), a.newSkins(zone)); err != nil {
		return err
	}
	shown := admin.Options{
		Robots: a.residents(), Talk: a.movers(), Notifier: a.herald, Memory: a.memory, Notices: a.notices, Board: a.board, Bus: a.bus, Senses: a.senses,
		Questions: asked{a.hooks, a.talk}, Conversations: a.mind,
		Turns: func(n int) any { return a.records.Turns(n) }, Parts: a.parts, Counters: a.counters(), Gauges: a.gauges(), Firmware: a.firmware, Refused: a.ota.Refused,
		Archives: newArchives(a.data, a.db, a.askRestart, a.log),
		Version:  version, ID: a.id, Started: a.started,
	}
	a.admin, a.metrics = admin.New(shown), admin.NewMetrics(shown)
	if err := a.db.Readable(); err != nil { // what was read so far may be a part of it
		return err
	}
	if a.doors, err = openDoors(a); err != nil {
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

func (a *app) residents() residents {
	return residents{a.robots, a.talk, a.senses.board, a.mind, a.memory, a.bus, a.characters}
}

// think makes the engines, and the mind of its brains.
func (a *app) think(ears voice.Recognizers) (err error) {
	a.talks = vccp.NewTalks(a.log)
	house := mindOf{a.memory, a.timers, a.herald, a.senses, a.robots.Trusts, a.lend}
	tell := func(e event.Event) { a.bus.Publish("", "", e) }
	if a.engines, err = newEngines(a.config, house, a.findWyoming, tell, a.log); err != nil {
		return err
	}
	if ears != nil {
		a.engines.ears, a.engines.sphinx = ears, nil
	}
	a.mind = agent.NewMind(a.engines.brains, a.memory, a.bus, a.log)
	a.mind.Keep(agent.NewHistories(store.NewTable[agent.Conversation](a.db, "conversations")))
	return nil
}

// keep opens what is remembered.
func (a *app) keep() error {
	key, err := secret(a.data, "token-key", a.log)
	if err != nil {
		return err
	}
	identity := store.NewTable[string](a.db, "appliance")
	id, found, err := identity.Get("id")
	if err != nil {
		return err
	}
	if !found {
		id = newID()
		// The time first: without it an appliance whose power is cut in between
		// would adopt nobody in its first hour.
		err := errors.Join(identity.Put("installed", a.started.UTC().Format(time.RFC3339)), identity.Put("id", id))
		if err != nil {
			return err
		}
	}
	a.id = id
	installed, _, err := identity.Get("installed")
	if err != nil {
		return err
	}
	a.tokenKey = device.Key(key)
	a.robots = device.NewRegistry(a.tokenKey, device.Adoption(a.config.Adoption), store.NewTable[device.Robot](a.db, "robots"))
	if at, err := time.Parse(time.RFC3339, installed); err == nil && !at.After(time.Now()) && a.db.Salvaged() == nil {
		a.robots.Welcome(at.Add(device.WelcomeLasts))
	}
	if n := a.robots.Strangers(); n > 0 {
		a.log.Warn("robots that nobody has adopted may talk, and nothing else; perch devices lists them", "count", n)
	}
	a.memory = agent.NewMemory(store.NewTable[agent.Entry](a.db, "memory"))
	a.notices = agent.NewNotices(store.NewTable[agent.Notice](a.db, "notifications"))
	a.timers = agent.NewTimers(store.NewTable[agent.Timer](a.db, "timers"), nil)
	a.records = robot.NewRecords(store.NewTable[robot.SessionRecord](a.db, "sessions"),
		store.NewTable[robot.TurnRecord](a.db, "turns"), a.config.Robots.KeepTurns)
	a.waiting = robot.NewCommandQueue(store.NewTable[[]robot.Command](a.db, "waiting"))
	return nil
}

// openWyoming makes the appliance a Wyoming server, where it is to be one. What
// it offers is its own: the engines in this process, and the mind. An engine
// that is a Wyoming server itself is for its owner to name to Home Assistant.
func (a *app) openWyoming(zone *time.Location) error {
	address := a.config.Wyoming.Listen
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return listenError(address, "wyoming.listen", err)
	}
	o := wyoming.Options{Listen: []net.Listener{l}, Mind: a.mind, Language: a.config.Language, Zone: zone,
		Sorry: a.engines.book.Phrase("failed"), Name: a.config.Name, ID: a.id, Version: version, Log: a.log}
	if len(a.engines.sphinx) > 0 {
		o.Ears = a.engines.sphinx[0]
	}
	if len(a.engines.espeak) > 0 {
		o.Mouth = a.engines.espeak[0]
	}
	if a.wyoming, err = wyoming.New(o); err != nil {
		return errors.Join(err, l.Close())
	}
	a.at = l.Addr()
	if port, ok := reachable(a.at); ok {
		a.also = append(a.also, mdns.Offer{Type: mdns.Wyoming, Port: port})
	}
	return nil
}

// findWyoming looks for Wyoming servers on the network that are not this one.
func (a *app) findWyoming(ctx context.Context) ([]string, error) {
	own := mdns.Options{Name: a.config.Name, ID: a.id}.Instance()
	return mdns.Search{Type: mdns.Wyoming, Except: []string{own}, Interfaces: a.config.MDNS.Interfaces}.Targets(ctx)
}

// errRestart ends a run after which another is wanted.
var errRestart = errors.New("a restart was asked for")

// askRestart has Run begin anew.
func (a *app) askRestart() {
	select {
	case a.restart <- struct{}{}:
	default: // it has begun
	}
}

// Run serves until ctx ends, and then stops in the order that lets everybody
// know: the name is withdrawn first, robots are hung up on, what waits is
// written. It returns errRestart where somebody wants it to begin anew.
func (a *app) Run(ctx context.Context) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { a.board.Run(inner, a.bus.ReadFrom(1)) })
	wg.Go(func() {
		if err := a.herald.Run(inner, a.talk); err != nil {
			a.log.Error("notifications and timers are no longer told", "err", err)
		}
	})
	wg.Go(func() { a.senses.board.Run(inner, a.bus.ReadFrom(1)) })
	wg.Go(func() { a.behaviours.Run(inner, a.talk) })
	wg.Go(func() { a.skins.Run(inner) })
	wg.Go(func() { a.hooks.Run(inner) })
	wg.Go(func() { a.vccp.Run(inner) })
	wg.Go(func() { a.warm(inner) })
	wg.Go(func() { a.watch(inner) })
	wg.Go(func() { a.engines.tend(inner) })
	wg.Go(func() { a.metrics.Run(inner, a.bus.ReadFrom(1)) })
	wg.Go(func() {
		if err := a.mirror.Run(inner); err != nil {
			a.log.Error("nothing is told over MQTT any more", "err", err)
		}
	})
	failed := make(chan error, 2)
	wg.Go(func() { failed <- a.doors.serve() })
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
				a.log.Error("the appliance is not announced on the network", "err", err)
			}
		})
	}
	manager := systemd(a.log)
	wg.Go(func() { manager.watch(inner, a.alive) })
	a.log.Info("perch is ready", "version", version, "listen", a.doors.addresses(), "data", a.data)
	manager.tell(daemon.SdNotifyReady)
	if a.ready != nil {
		wg.Go(func() { a.ready(inner) })
	}
	var err error
	select {
	case <-ctx.Done():
	case <-a.restart:
		err = errRestart
	case err = <-failed:
		failed <- nil // for nobody; the channel has room again
	}
	if !errors.Is(err, errRestart) { // then it goes on as the same process
		manager.tell(daemon.SdNotifyStopping)
	}
	withdraw()
	announcing.Wait()
	a.vccp.Close() // its streams have no end of their own
	a.talks.Close()
	a.doors.stop()
	if a.wyoming != nil {
		a.wyoming.Close()
	}
	a.talk.Close()
	a.bus.Close()
	stop()
	wg.Wait()
	return err
}

// warm loads the recognizer and has what the appliance says by itself made when
// the first robot comes: an appliance nobody talks to stays small, and the
// first utterance need not wait. Whenever a robot begins to listen, what the
// turn to come will use is made ready.
func (a *app) warm(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	loaded, warmed := false, time.Time{}
	a.bus.ReadFrom(1).Each(ctx, func(e event.Envelope) {
		switch e.Event.(type) {
		case event.RobotSeen, event.RobotOnline:
			if !loaded {
				loaded = true
				wg.Go(func() { a.load(ctx) })
			}
		case event.ListeningStarted:
			if now := time.Now(); now.Sub(warmed) >= warmEvery {
				warmed = now
				wg.Go(func() { a.engines.warm(ctx) })
			}
		}
	})
}

func (a *app) load(ctx context.Context) {
	a.talk.Prepare()
	for _, engine := range a.engines.sphinx {
		if err := engine.Load(ctx); err != nil && ctx.Err() == nil {
			a.log.Error("the recognizer cannot be loaded; robots will not be understood", "err", err)
		}
	}
}

// Close releases what newApp opened. Run, where it was called, has returned.
func (a *app) Close() {
	if a.vccp != nil {
		a.vccp.Close()
	}
	if a.talks != nil {
		a.talks.Close()
	}
	if a.doors != nil {
		a.doors.stop()
	}
	if a.wyoming != nil {
		a.wyoming.Close()
	}
	if a.talk != nil {
		a.talk.Close()
	}
	if a.engines != nil {
		a.engines.close()
	}
	if a.bus != nil {
		a.bus.Close()
	}
	if a.db != nil {
		if err := a.db.Close(); err != nil {
			a.log.Error("the last changes may not have been kept", "err", err)
		}
	}
}

func note(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
