package appliance

import (
	"perch/agent"
	"perch/agent/acp"
	"perch/agent/diary"
	"perch/agent/mood"
	"perch/agent/notice"
	"perch/agent/thinker"
	"perch/cmd/perch/characters"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/drivers"
	"perch/cmd/perch/skills"
	"perch/device"
	"perch/event"
	"perch/gateway/vccp"
	"perch/perception"
	"perch/store"
)

// newMind makes what understands, thinks and speaks, and what everybody reads to know how it
// goes.
func (a *Appliance) newMind(c *config.Config) (err error) {
	a.Bus, a.board = event.NewBusFor(a.Robots.Trusts), agent.NewBoard()
	a.closers = append(a.closers, a.Bus.Close)
	a.intake = perception.NewIntake(a.Bus, a.Robots, a.Log)
	a.Senses = perception.NewStates(store.NewTable[perception.State](a.DB, "perception"))
	for _, id := range a.Senses.Known() { // from before, when strangers' senses were kept
		if !a.Robots.Trusts(id) {
			a.Senses.Forget(id)
		}
	}
	publishStored(a.Bus, a.Memory, a.Timers)
	if a.Characters, err = characters.New(c, a.Robots, a.Data, a.Log); err != nil {
		return err
	}
	if a.Skills, err = skills.New(skills.Options{Config: a.Config, Data: a.Data, Key: a.Signer, Memory: a.Memory, SkillsOf: a.Characters.SkillsOf,
		Publish: a.Bus.Publish, Log: a.Log}); err != nil {
		return err
	}
	a.closers = append(a.closers, a.Skills.Close)
	a.notifier = notice.New(notice.Options{Store: a.Notices, Timers: a.Timers, Bus: a.Bus, Log: a.Log})
	a.talks = vccp.NewTalks(a.Log)
	first, err := a.newEngines(c, nil)
	if err != nil {
		return err
	}
	a.engines.replace(first)
	a.closers = append(a.closers, a.engines.close, a.talks.Close)
	a.phrase = func(id device.ID, name string) string { return a.Phrase(a.Characters.Language(id), name) }
	a.Mind = agent.NewMind(func() ([]agent.Brain, func()) {
		e, done := a.engines.hold()
		return e.brains, done
	}, a.Memory, a.Bus, a.Log)
	a.Mind.Keep(agent.NewHistories(store.NewTable[agent.Conversation](a.DB, "conversations")))
	a.Mind.Complete(a.Characters.Complete)
	a.Characters.Follow(a.Characters)
	words, err := mood.ReadWords(datadir.Words(a.Data))
	if err != nil {
		a.Log.Warn("a list of words for moods is not used; correct it and restart the appliance", "err", err)
	}
	a.sentiment = func(text string) float64 { return words.Analyse(text, a.Config().Language.First()).Valence }
	a.moods = mood.New(mood.Options{Bus: a.Bus, Words: words, Off: func() bool { return a.Config().Mood == "off" }, Language: a.Characters.Language})
	a.Diary, err = diary.Open(diary.Options{Entries: store.NewTable[diary.Entry](a.DB, "diary"), Heads: store.NewTable[diary.Head](a.DB, "diary-head"),
		Key: a.Signer, Begins: a.diaryBegins, Keep: c.Diary.Keep, Who: a.Characters.Who, Sentiment: a.sentiment, Publish: a.Bus.Publish, Log: a.Log})
	return err
}

// publishStored has changes of the memory and of timers published.
func publishStored(bus *event.Bus, memory *agent.Memory, timers *notice.Timers) {
	memory.Watch(func(id string) { bus.Publish("", "", event.Changed{What: "memory", ID: id}) })
	memory.Announce(func(e agent.Entry) {
		r := event.Remembered{ID: e.ID, Type: e.Type, Name: e.Name, Body: e.Body}
		if e.Source == agent.SourceViewer {
			r.By = event.ByViewer
		}
		bus.Publish(e.Robot, e.Session, r)
	})
	timers.Watch(func(id string) { bus.Publish("", "", event.Changed{What: "timers", ID: id}) })
}

// newEngines makes the engines of a configuration, or takes over those before that it
// leaves as they are.
func (a *Appliance) newEngines(c *config.Config, before *engines) (*engines, error) {
	own := thinker.Options{Memory: a.Memory, Timers: a.Timers, Notify: a.notifier.NotifyAll, Senses: a.Senses, Skills: a.Skills,
		Publish: a.Bus.Publish}
	fault := func(e event.Event) { a.Bus.Publish("", "", e) }
	lend := func() acp.ToolEndpoint { return a.talks.Open(a.Listeners.URL() + "/mcp/talk") }
	e, err := nextEngines(before, c, drivers.Brain{BrainSetup: thinker.BrainSetup{Options: own}, MayAnswer: a.Robots.Trusts, Lend: lend, Skills: a.Skills}, a.network.WyomingServers, fault, a.Log)
	if err == nil && a.options.Recognizers != nil {
		e.recognizers, e.loads = a.options.Recognizers, nil
	}
	return e, err
}

// Phrase returns one of the appliance's own sentences in a language; an empty tag is the
// household's.
func (a *Appliance) Phrase(tag, name string) string { return a.engines.get().Phrase(tag, name) }
