package appliance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/cmd/perch/listener"
	"perch/cmd/perch/machine"
	"perch/cmd/perch/robots"
	"perch/cmd/perch/systemd"
	"perch/event"
	"perch/health"
	"perch/idlememory"
	"perch/remote"
)

// part is one of those that an appliance consists of.
type part struct {
	// run does its work until ctx ends. An error is logged with the words of fails; if fails is
	// empty, the error ends the appliance.
	run   func(ctx context.Context) error
	fails string
	// first is whether run has to end before any other part does.
	first bool
	// end disconnects the clients that it serves.
	end func()
	// conditions are shown by /ready and the doctor.
	conditions func() []health.Part
}

// list returns every part, in the order in which their conditions are shown. They end in the
// opposite order.
func (a *Appliance) list() []part {
	fromFirst := func(run func(context.Context, *event.Reader)) func(context.Context) error {
		return until(func(ctx context.Context) { run(ctx, a.Bus.ReadFrom(1)) })
	}
	all := []part{
		{run: until(func(ctx context.Context) { machine.Watch(ctx, a.DB, a.Data, a.clockJumped, a.Log) }), conditions: func() []health.Part { return machine.Conditions(a.DB, a.Data, a.options.Built) }},
		{run: until(func(ctx context.Context) { idlememory.Run(ctx, nextEvent(a.Bus.Read()), a.Log) })},
		{run: until(func(ctx context.Context) { a.identity.Run(ctx, func() { a.Robots.Welcome(time.Time{}) }) })},
		{run: fromFirst(a.board.Run), end: a.Bus.Close},
		{run: fromFirst(a.metrics.Run)},
		{run: fromFirst(a.Senses.Run)},
		{run: func(ctx context.Context) error { return a.notifier.Run(ctx, a.Talk) }, fails: "notifications and timers have stopped"},
		{run: until(a.moods.Run)},
		{run: until(func(ctx context.Context) {
			a.behaviours.Run(ctx, a.Talk, robots.RuleActions{Registry: a.Robots, Server: a.Talk, Notifier: a.notifier, MQTT: a.Mirror})
		})},
		{run: fromFirst(a.Diary.Run), conditions: one(func() health.Part { return health.Of("diary", a.Diary.Err(), "") })},
		{run: until(a.warm), end: a.Talk.Close},
		{run: func(context.Context) error { return a.Listeners.Serve() }, end: a.Listeners.Stop, conditions: one(a.Listeners.Condition)},
		{end: a.Talk.StopAccepting}, // before the listeners, which wait for downloads
		{run: func(ctx context.Context) error { return a.RobotMQTT.Run(ctx, a.Talk) }, fails: "robots cannot connect by MQTT any more",
			conditions: one(a.RobotMQTT.Condition)},
		{conditions: one(a.Firmware.Condition)},
		{conditions: a.Characters.Conditions},
		{run: until(a.engines.run), conditions: func() []health.Part { return a.engines.get().conditions() }},
		when(a.web != nil, part{conditions: one(func() health.Part { return a.web.Condition(a.Listeners.IngressErr) })}),
		when(a.wyoming != nil, part{run: a.wyoming.Run, end: a.wyoming.Close, conditions: one(func() health.Part {
			return health.Part{Name: "wyoming", OK: true, Note: fmt.Sprintf("serves %s", a.At)}
		})}),
		{conditions: a.Listeners.Encryption},
		{run: a.Mirror.Run, fails: "MQTT has stopped", conditions: one(a.Mirror.Condition)},
		when(a.homeAssistant != nil, part{run: until(func(ctx context.Context) { a.homeAssistant.Run(ctx, a.offers, a.Log) }),
			conditions: one(a.homeAssistant.Condition)}),
		{run: until(a.feed.Run)},
		{run: until(a.skins.Run)},
		{run: until(a.llmvtuber.Run)},
		{run: until(a.aituber.Run)},
		{run: until(a.relays.Run), conditions: a.relayParts},
		when(a.openClaw != nil, part{run: until(a.openClaw.Run), conditions: one(func() health.Part {
			return health.Part{Name: "openclaw", OK: true}.Saying(fmt.Sprintf("serves %s; %d programs are connected",
				strings.Join(a.Listeners.At(listener.OpenClaw), ", "), a.openClaw.Connected()))
		})}),
		{run: until(a.hooks.Run)},
		{run: fromFirst(a.actions.Run)},
		{run: until(a.character.Run)},
		{end: a.talks.Close},
		{run: until(a.vccp.Run), end: a.vccp.Close}, // its streams have no end of their own
		{run: a.network.Run, first: true, fails: "the appliance is not announced on the network", conditions: one(a.network.Condition)},
		{run: until(func(ctx context.Context) { systemd.New(a.Log).Watchdog(ctx, a.alive) })},
	}
	if a.options.Logs != nil {
		all = append(all, part{end: a.options.Logs.Close}) // its followers have no end of their own
	}
	if out := a.options.FirstSteps; out != nil {
		all = append(all, part{run: until(func(ctx context.Context) { a.network.PrintFirstSteps(ctx, out, a.options.Flags) })})
	}
	return all
}

// clockJumped corrects times that are stored by the wall clock.
func (a *Appliance) clockJumped(by time.Duration) {
	a.Robots.Moved(by)
	a.commands.Moved(by)
}

// nextEvent returns a function that waits for an event: an urgent one is a robot that is about
// to talk.
func nextEvent(events *event.Reader) func(context.Context) (urgent bool, err error) {
	return func(ctx context.Context) (urgent bool, err error) {
		e, err := events.Next(ctx)
		switch e.Event.(type) {
		case event.RobotSeen, event.RobotConnected:
			urgent = true
		}
		return urgent, err
	}
}

// until is a run that cannot fail.
func until(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); return nil }
}

// one makes a list of one condition.
func one(condition func() health.Part) func() []health.Part {
	return func() []health.Part { return []health.Part{condition()} }
}

// when returns a part of an appliance that has it.
func when(has bool, p part) part {
	if has {
		return p
	}
	return part{}
}

// Parts returns the condition of each part.
func (a *Appliance) Parts() (all []health.Part) {
	for _, p := range a.list() {
		if p.conditions != nil {
			all = append(all, p.conditions()...)
		}
	}
	return all
}

// Run serves until ctx ends, and then stops in the order that lets everybody know: the name is
// withdrawn first, robots' sessions are closed, pending writes are flushed. It returns
// ErrRestart where a restart was asked for.
func (a *Appliance) Run(ctx context.Context) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	parts := a.list()
	failed := make(chan error, len(parts))
	var others, first sync.WaitGroup
	early, withdraw := context.WithCancel(inner)
	defer withdraw()
	for _, p := range parts {
		switch {
		case p.run == nil:
		case p.first:
			first.Go(func() { p.work(early, failed, a.Log) })
		default:
			others.Go(func() { p.work(inner, failed, a.Log) })
		}
	}
	manager := systemd.New(a.Log)
	a.Log.Info("perch is ready", "version", a.options.Version, "listen", a.Listeners.Addresses(), "data", a.Data)
	manager.Ready()
	var err error
	select {
	case <-ctx.Done():
	case <-a.restart:
		err = ErrRestart
	case err = <-failed:
	}
	if !errors.Is(err, ErrRestart) { // then it goes on as the same process
		manager.Stopping()
	}
	a.applying.Lock() // after the change under way
	a.ending = true
	a.applying.Unlock()
	withdraw()
	first.Wait()
	for _, p := range slices.Backward(parts) {
		if p.end != nil {
			p.end()
		}
	}
	stop()
	others.Wait()
	return err
}

// work runs the part to its end.
func (p part) work(ctx context.Context, failed chan<- error, log *slog.Logger) {
	err := p.run(ctx)
	switch {
	case err == nil:
	case p.fails != "":
		log.Error(p.fails, "err", err)
	default:
		failed <- err
	}
}

// alive reports whether the loops that everything rests on still turn. Faults with which the
// program goes on, such as a full disk or an unreachable broker, are no reason for a restart;
// only a loop that hangs is.
func (a *Appliance) alive(ctx context.Context) error {
	return errors.Join(
		systemd.Returns(ctx, "the store", func() { _ = a.DB.Readable() }), // that it answers is enough
		delivers(ctx, a.Bus, a.board),
		a.Listeners.Check(ctx),
	)
}

// delivers reports whether what is on the bus reaches the board.
func delivers(ctx context.Context, bus *event.Bus, board *agent.Board) error {
	var latest uint64
	if err := systemd.Returns(ctx, "the bus", func() { latest = bus.Seq() }); err != nil {
		return err
	}
	for {
		var reached uint64
		if err := systemd.Returns(ctx, "the board", func() { _, reached = board.Snapshot() }); err != nil || reached >= latest {
			return err
		}
		if remote.Sleep(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("the board is at event %d and the bus at %d", reached, latest)
		}
	}
}
