package appliance

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/coreos/go-systemd/v22/daemon"

	"perch/gateway/admin"
)

// part is one of those that an appliance consists of.
type part struct {
	// run does its work until ctx ends. An error is logged with the words of
	// fails; where there are none, it ends the appliance.
	run   func(ctx context.Context) error
	fails string
	// first is whether run has to end before any other part does.
	first bool
	// end lets go of those that it serves.
	end func()
	// condition is how it does, as /ready and the doctor show it.
	condition func() []admin.Part
}

// list is every part, in the order in which their conditions are shown. They end
// in the opposite order.
func (a *Appliance) list() []part {
	all := []part{
		{condition: only(func() admin.Part { return storePart(a.DB, a.Data) })},
		{run: until(a.watch), condition: a.machine},
		{run: until(a.rest)},
		{run: until(a.watchFirstHour)},
		{run: until(func(ctx context.Context) { a.board.Run(ctx, a.Bus.ReadFrom(1)) }), end: a.Bus.Close},
		{run: until(func(ctx context.Context) { a.metrics.Run(ctx, a.Bus.ReadFrom(1)) })},
		{run: until(func(ctx context.Context) { a.Senses.Board.Run(ctx, a.Bus.ReadFrom(1)) })},
		{run: func(ctx context.Context) error { return a.notifier.Run(ctx, a.Talk) }, fails: "notifications and timers have stopped"},
		{run: until(a.moods.Run)},
		{run: until(func(ctx context.Context) { a.behaviours.Run(ctx, a.Talk) })},
		a.diaryPart(),
		{run: until(a.warm), end: a.Talk.Close},
		{run: func(context.Context) error { return a.Doors.serve() }, end: a.Doors.stop,
			condition: only(func() admin.Part { return a.Doors.condition(a.Data) })},
		{end: a.Talk.StopAccepting}, // before the doors, which wait for downloads
		{run: func(ctx context.Context) error { return a.robotMQTT.run(ctx, a.Talk) }, fails: "robots cannot connect by MQTT any more",
			condition: only(func() admin.Part { return a.robotMQTT.shown })},
		{condition: only(func() admin.Part { return rolloutsPart(a.Firmware.List()) })},
		{condition: a.Characters.lacking},
		{run: until(a.engines.run), condition: func() []admin.Part { return a.engines.get().conditions() }},
		a.pagePart(),
		a.wyomingPart(),
		{condition: a.Doors.encryption},
		{run: a.Mirror.Run, fails: "MQTT has stopped", condition: only(a.mqttPart)},
		a.homeAssistantPart(),
		{run: until(a.feed.Run)},
		{run: until(a.skins.Run)},
		{run: until(a.llmvtuber.Run)},
		{run: until(a.aituber.Run)},
		{run: until(a.relays.Run), condition: a.relayParts},
		a.openClawPart(),
		{run: until(a.hooks.Run)},
		{run: until(func(ctx context.Context) { a.actions.Run(ctx, a.Bus.ReadFrom(1)) })},
		{run: until(a.character.Run)},
		{end: a.talks.Close},
		{run: until(a.vccp.Run), end: a.vccp.Close}, // its streams have no end of their own
		{run: a.announce, first: true, fails: "the appliance is not announced on the network", condition: only(a.announced)},
		{run: until(func(ctx context.Context) { systemd(a.Log).watch(ctx, a.alive) })},
	}
	if a.Logs != nil {
		all = append(all, part{end: a.Logs.Close}) // those who follow have no end of their own
	}
	if a.Next.Out != nil {
		all = append(all, part{run: until(a.printNext)})
	}
	return all
}

// until is a run that cannot fail.
func until(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); return nil }
}

// only makes a list of one condition.
func only(one func() admin.Part) func() []admin.Part {
	return func() []admin.Part { return []admin.Part{one()} }
}

// Parts is the condition of each part.
func (a *Appliance) Parts() (all []admin.Part) {
	for _, p := range a.list() {
		if p.condition != nil {
			all = append(all, p.condition()...)
		}
	}
	return all
}

// Run serves until ctx ends, and then stops in the order that lets everybody
// know: the name is withdrawn first, robots' sessions are closed, pending writes
// are flushed. It returns ErrRestart where a restart was asked for.
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
			first.Go(func() { a.runPart(early, p, failed) })
		default:
			others.Go(func() { a.runPart(inner, p, failed) })
		}
	}
	manager := systemd(a.Log)
	a.Log.Info("perch is ready", "version", a.Version, "listen", a.Doors.Addresses(), "data", a.Data)
	manager.report(daemon.SdNotifyReady)
	var err error
	select {
	case <-ctx.Done():
	case <-a.restart:
		err = ErrRestart
	case err = <-failed:
	}
	if !errors.Is(err, ErrRestart) { // then it goes on as the same process
		manager.report(daemon.SdNotifyStopping)
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

// runPart runs a part to its end.
func (a *Appliance) runPart(ctx context.Context, p part, failed chan<- error) {
	err := p.run(ctx)
	switch {
	case err == nil:
	case p.fails != "":
		a.Log.Error(p.fails, "err", err)
	default:
		failed <- err
	}
}
