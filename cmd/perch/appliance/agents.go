package appliance

import (
	"context"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/notice"
	"perch/agent/thinker"
	"perch/event"
	"perch/gateway/vccp"
	"perch/perception"
	"perch/store"
	"perch/voice"
	"perch/voice/sounds"
)

// agents are what understands, thinks and speaks, and what all others read to
// know how it goes.
type agents struct {
	Bus        *event.Bus
	board      *agent.Board
	Senses     senses
	notifier   *notice.Notifier
	talks      *vccp.Talks // of coding agents
	Engines    *engines
	Mind       *agent.Mind
	Characters *characters
	sounds     *sounds.Library
}

// newAgents makes the engines, and the Mind of its brains. find looks for Wyoming
// servers on the network, lend opens the tools of a turn to a coding agent, and
// recognizers are used instead of those configured, where there are any.
func newAgents(b basics, k *kept, find func(context.Context) ([]string, error), lend func() acp.ToolEndpoint, recognizers voice.Recognizers) (*agents,
	error) {
	bus := event.NewBusFor(k.Robots.Trusts)
	g := &agents{Bus: bus, board: agent.NewBoard(), talks: vccp.NewTalks(b.Log), sounds: sounds.Open(b.soundsDirectory()),
		Senses: senses{perception.NewIntake(bus, k.Robots, b.Log), perception.NewStates(store.NewTable[perception.State](k.DB, "perception"))}}
	for _, id := range g.Senses.Board.Known() { // from before, when strangers' senses were kept
		if !k.Robots.Trusts(id) {
			g.Senses.Board.Forget(id)
		}
	}
	g.notifier = notice.New(notice.Options{Store: k.Notices, Timers: k.Timers, Bus: bus, Log: b.Log})
	own := thinker.Options{Memory: k.Memory, Timers: k.Timers, Notify: g.notifier.NotifyAll, Senses: g.Senses}
	var err error
	tell := func(e event.Event) { bus.Publish("", "", e) }
	if g.Engines, err = NewEngines(b.Config, BrainOptions{own, k.Robots.Trusts, lend}, find, tell, b.Log); err != nil {
		return g, err
	}
	if recognizers != nil {
		g.Engines.recognizers, g.Engines.sphinx = recognizers, nil
	}
	g.Mind = agent.NewMind(g.Engines.brains, k.Memory, bus, b.Log)
	g.Mind.Keep(agent.NewHistories(store.NewTable[agent.Conversation](k.DB, "conversations")))
	if g.Characters, err = newCharacters(b.Config, k.Robots, b.Data, b.Log); err != nil {
		return g, err
	}
	g.Mind.Complete(g.Characters.Complete)
	return g, nil
}

// close releases the engines and ends the bus.
func (g *agents) close() {
	if g.Engines != nil {
		g.Engines.Close()
	}
	g.Bus.Close()
}

// warm loads the recognizer and synthesizes the appliance's own sentences when
// the first robot comes: an unused appliance stays small, and the first
// utterance need not wait. Whenever a robot begins to listen, what the
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
