package appliance

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/agent/action"
	"perch/agent/mood"
	"perch/agent/notice"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/event"
	"perch/gateway/vccp"
	"perch/perception"
	"perch/store"
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
	engines    currentEngines
	loaded     atomic.Bool // the engines were, since a robot has come
	Mind       *agent.Mind
	Skills     *skills
	Characters *characters
	moods      *mood.Moods
	sentiment  action.Sentiment // of what is said
	sounds     *sounds.Library
}

// newAgents makes the engines, or takes those recognizers that the options name,
// and the Mind of its brains.
func (a *Appliance) newAgents() (err error) {
	bus := event.NewBusFor(a.Robots.Trusts)
	a.agents = &agents{Bus: bus, board: agent.NewBoard(), talks: vccp.NewTalks(a.Log), sounds: sounds.Open(a.soundsDirectory()),
		Senses: senses{perception.NewIntake(bus, a.Robots, a.Log), perception.NewStates(store.NewTable[perception.State](a.DB, "perception"))}}
	for _, id := range a.Senses.Board.Known() { // from before, when strangers' senses were kept
		if !a.Robots.Trusts(id) {
			a.Senses.Board.Forget(id)
		}
	}
	a.Memory.Watch(func(id string) { bus.Publish("", "", event.Changed{What: "memory", ID: id}) })
	a.Memory.Announce(func(e agent.Entry) {
		r := event.Remembered{ID: e.ID, Type: e.Type, Name: e.Name, Body: e.Body}
		if e.Source == agent.SourceViewer {
			r.By = event.ByViewer
		}
		bus.Publish(e.Robot, e.Session, r)
	})
	a.Timers.Watch(func(id string) { bus.Publish("", "", event.Changed{What: "timers", ID: id}) })
	a.notifier = notice.New(notice.Options{Store: a.Notices, Timers: a.Timers, Bus: bus, Log: a.Log})
	if err := a.newSkills(); err != nil {
		return err
	}
	first, err := a.newEngines(a.Config(), nil)
	if err != nil {
		return err
	}
	a.engines.replace(first)
	a.Mind = agent.NewMind(func() ([]agent.Brain, func()) {
		e, done := a.engines.hold()
		return e.brains, done
	}, a.Memory, bus, a.Log)
	a.Mind.Keep(agent.NewHistories(store.NewTable[agent.Conversation](a.DB, "conversations")))
	if a.Characters, err = newCharacters(a.Config(), a.Robots, a.Data, a.Log); err != nil {
		return err
	}
	a.Characters.follow(a.Characters, a.Log)
	a.Mind.Complete(a.Characters.Complete)
	a.newMoods()
	return nil
}

// newEngines makes the engines of a configuration, or takes over those before that it
// leaves as they are.
func (a *Appliance) newEngines(c *config.Config, before *engines) (*engines, error) {
	own := thinker.Options{Memory: a.Memory, Timers: a.Timers, Notify: a.notifier.NotifyAll, Senses: a.Senses, Skills: a.Skills,
		Publish: a.Bus.Publish}
	tell := func(e event.Event) { a.Bus.Publish("", "", e) }
	e, err := nextEngines(before, c, BrainOptions{own, a.Robots.Trusts, a.lendTools, a.Skills.Library}, a.findWyoming, tell, a.Log)
	if err == nil && a.Recognizers != nil {
		e.recognizers, e.sphinx = a.Recognizers, nil
	}
	return e, err
}

// Phrase is one of the appliance's own sentences in a language; an empty tag is the
// household's.
func (a *Appliance) Phrase(tag, name string) string { return a.engines.get().Phrase(tag, name) }

// phraseOf is one of them in a robot's language.
func (a *Appliance) phraseOf(id device.ID, name string) string {
	return a.Phrase(a.Characters.Of(id).Speech.Language, name)
}

// warm loads the recognizer and synthesizes the appliance's own sentences when
// the first robot comes: an unused appliance stays small, and the first
// utterance need not wait. Whenever a robot begins to listen, what the
// turn to come will use is made ready.
func (a *Appliance) warm(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	warmed := time.Time{}
	a.Bus.ReadFrom(1).Each(ctx, func(e event.Envelope) {
		switch e.Event.(type) {
		case event.RobotSeen, event.RobotOnline:
			if !a.loaded.Swap(true) {
				wg.Go(func() { a.load(ctx) })
			}
		case event.ListeningStarted:
			if now := time.Now(); now.Sub(warmed) >= warmEvery {
				warmed = now
				wg.Go(func() {
					e, done := a.engines.hold()
					defer done()
					e.warm(ctx)
				})
			}
		}
	})
}

func (a *Appliance) load(ctx context.Context) {
	a.Talk.Prepare()
	e, done := a.engines.hold()
	defer done()
	if err := e.load(ctx); err != nil && ctx.Err() == nil {
		a.Log.Error("the recognizer cannot be loaded; robots will not be understood", "err", err)
	}
}
