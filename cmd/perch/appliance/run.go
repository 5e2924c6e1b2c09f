package appliance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"perch/agent"
	"perch/cmd/perch/machine"
	"perch/cmd/perch/parts"
	"perch/cmd/perch/robots"
	"perch/cmd/perch/systemd"
	"perch/event"
	"perch/health"
)

// list returns the parts in the order of their conditions in /ready. Run ends the network part first,
// and then calls End of the parts in reverse order; see parts.Runner.
func (a *Appliance) list() []parts.Part {
	// fromFirst makes a Part.Run that reads the bus from its first event.
	fromFirst := func(run func(context.Context, *event.Reader)) func(context.Context) error {
		return parts.Infallible(func(ctx context.Context) { run(ctx, a.Bus.ReadFrom(1)) })
	}
	logEvent := func(e event.Envelope) { // without its texts: the log has no words of conversations
		if _, isMood := e.Event.(event.Mood); !isMood { // published up to ten times per second
			a.Log.Debug("an event was published", "id", a.Bus.ID(e.Seq), "kind", event.Kind(e.Event), "robot", e.Robot, "session", e.Session)
		}
	}
	clockJumped := func(by time.Duration) {
		a.Robots.ClockJumped(by)
		a.commands.ClockJumped(by)
	}
	list := []parts.Part{
		{Run: parts.Infallible(func(ctx context.Context) { machine.Watch(ctx, a.DB, a.Data, clockJumped, a.Log) }),
			Conditions: func() []health.Part { return machine.Conditions(a.DB, a.Data, a.options.Built) }},
		{Run: parts.Infallible(func(ctx context.Context) { machine.ReleaseMemory(ctx, a.Bus.Read(), a.Log) })},
		{Run: parts.Infallible(func(ctx context.Context) { a.Identity.Run(ctx, func() { a.Robots.Welcome(time.Time{}) }) })},
		{Run: fromFirst(a.board.Run), End: a.Bus.Close},
		{Run: fromFirst(a.metrics.Run)},
		{Run: fromFirst(a.OwnerRobots.Days.Run)},
		{Run: fromFirst(a.Senses.Run)},
		parts.When(a.Log.Enabled(context.Background(), slog.LevelDebug), parts.Part{
			Run: fromFirst(func(ctx context.Context, events *event.Reader) { events.Each(ctx, logEvent) })}),
		{Run: func(ctx context.Context) error { return a.Agents.Notifier.Run(ctx, a.Talk) }, Fails: "notifications and timers have stopped"},
		{Run: parts.Infallible(a.Agents.Moods.Run)},
		{Run: parts.Infallible(func(ctx context.Context) {
			a.behaviours.Run(ctx, a.Talk, robots.RuleActions{Registry: a.Robots, Server: a.Talk, Notifier: a.Agents.Notifier, MQTT: a.Mirror})
		})},
		{Run: fromFirst(a.Agents.Diary.Run), Conditions: parts.SingleCondition(func() health.Part { return health.Of("diary", a.Agents.Diary.Err(), "") })},
		{Run: fromFirst(robots.Naming{Robots: a.OwnerRobots, Server: a.Talk, Character: a.Agents.Characters.Of, Log: a.Log,
			IsCommand: func(text string) bool { return a.Agents.Engines.Engines().IsCommand(text) }}.Run)},
		{Run: fromFirst(a.warmer.Run), End: a.Talk.Close},
		{Run: func(context.Context) error { return a.Listeners.Serve() }, End: a.Listeners.Stop, Conditions: parts.SingleCondition(a.Listeners.Condition)},
		{End: a.Talk.StopAccepting}, // ends before the listeners, which wait for downloads
		{Run: func(ctx context.Context) error { return a.RobotMQTT.Run(ctx, a.Talk.ServeMQTT) }, Fails: "robots cannot connect by MQTT any more",
			Conditions: parts.SingleCondition(a.RobotMQTT.Condition)},
		{Conditions: parts.SingleCondition(a.Firmware.Condition)},
		{Conditions: a.Agents.Characters.Conditions},
		{Run: parts.Infallible(a.Agents.Engines.Run), Conditions: func() []health.Part { return a.Agents.Engines.Engines().Conditions() }},
		parts.When(a.web != nil, parts.Part{Conditions: parts.SingleCondition(func() health.Part { return a.web.Condition(a.Listeners.IngressErr) })}),
		parts.When(a.options.Overlay != nil && a.options.Overlay.Speech != nil, parts.Part{
			Run:        parts.Infallible(func(ctx context.Context) { a.options.Overlay.FollowSpeech(ctx, a.Log) }),
			Conditions: func() []health.Part { return a.options.Overlay.Speech.Conditions(a.Config()) }}),
		parts.When(a.wyoming != nil, parts.Part{Run: a.wyoming.Run, End: a.wyoming.Close, Conditions: parts.SingleCondition(func() health.Part {
			return health.Part{Name: "wyoming", OK: true, Note: fmt.Sprintf("serves %s", a.WyomingAddr)}
		})}),
		{Conditions: a.Listeners.Encryption},
		{Run: a.Mirror.Run, Fails: "MQTT has stopped", Conditions: parts.SingleCondition(a.Mirror.Condition)},
		parts.When(a.homeAssistant != nil, parts.Part{Run: parts.Infallible(func(ctx context.Context) { a.homeAssistant.Run(ctx, a.offers, a.Log) }),
			Conditions: parts.SingleCondition(a.homeAssistant.Condition)}),
		{End: a.Agents.Talks.Close},
	}
	list = append(append(list, a.viewers.Parts(a.Listeners)...),
		parts.Part{Run: a.network.Run, First: true, Fails: "the appliance is not announced on the network", Conditions: parts.SingleCondition(a.network.Condition)},
		parts.Part{Run: parts.Infallible(func(ctx context.Context) { systemd.New(a.Log).Watchdog(ctx, a.checkAlive) })})
	if a.options.Logs != nil {
		list = append(list, parts.Part{End: a.options.Logs.Close})
	}
	if out := a.options.FirstSteps; out != nil {
		var link func() string
		if a.options.Terminal && a.web != nil {
			link = a.web.LocalLink
		}
		list = append(list, parts.Part{Run: parts.Infallible(func(ctx context.Context) { a.network.PrintFirstSteps(ctx, out, a.options.Flags, link) })})
	}
	return list
}

// Parts returns the condition of each part.
func (a *Appliance) Parts() []health.Part { return parts.Conditions(a.list()) }

// Run runs the parts until ctx is done, a restart is requested or a part fails. Then it ends the parts: first
// it withdraws the name from the network, then it closes the listeners and the robots' sessions, and at last it
// ends all other parts, which store their pending data. It returns nil, ErrRestart or the error of the part,
// respectively.
func (a *Appliance) Run(ctx context.Context) error {
	manager := systemd.New(a.Log)
	return parts.Runner{Parts: a.list(), Ended: a.restart, Log: a.Log,
		Started: func() {
			a.Log.Info("perch is ready", "version", a.options.Version, "listen", a.Listeners.Addresses(), "data", a.Data)
			manager.Ready()
		},
		Stopping: func(err error) {
			if !errors.Is(err, ErrRestart) { // a restart keeps the process
				manager.Stopping()
			}
			a.applying.Lock() // wait until a running change has been applied
			defer a.applying.Unlock()
			a.ending.Store(true)
		},
	}.Run(ctx)
}

// checkAlive returns an error if a part on which everything depends hangs, so that systemd restarts the
// program. It ignores faults that do not stop the program, such as a full disk or an unreachable broker.
func (a *Appliance) checkAlive(ctx context.Context) error {
	listening := a.Listeners.Check(ctx)
	if a.ending.Load() {
		listening = nil // Run closes the listeners
	}
	return errors.Join(
		systemd.Await(ctx, "the store", func() { _ = a.DB.Readable() }), // a store that returns an error does not hang
		waitForBoard(ctx, a.Bus, a.board),
		listening,
	)
}

// waitForBoard waits until the board has received the events that are on the bus now.
func waitForBoard(ctx context.Context, bus *event.Bus, board *agent.Board) error {
	var latest uint64
	if err := systemd.Await(ctx, "the bus", func() { latest = bus.Seq() }); err != nil {
		return err
	}
	for {
		var reached uint64
		if err := systemd.Await(ctx, "the board", func() { _, reached = board.Snapshot() }); err != nil || reached >= latest {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the board is at event %d and the bus at %d", reached, latest)
		}
	}
}
