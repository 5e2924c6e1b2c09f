// Package agents makes the characters with their skills, moods and diary, the engines, and the mind
// that has the brains answer.
package agents

import (
	"context"
	"log/slog"
	"slices"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/diary"
	"perch/agent/mood"
	"perch/agent/notice"
	"perch/agent/skill"
	"perch/agent/thinker"
	"perch/cmd/perch/characters"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/drivers"
	"perch/cmd/perch/engines"
	"perch/cmd/perch/skills"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/vccp"
	"perch/perception"
	"perch/store"
	"perch/voice"
)

// Options holds what agents need of an appliance.
type Options struct {
	Config      func() *config.Config // the present configuration
	Data        string                // the data directory
	DB          *store.DB
	Identity    *datadir.Identity
	Robots      *device.Registry
	Memory      *agent.Memory
	Notices     *notice.Store
	Timers      *notice.Timers
	Bus         *event.Bus
	Senses      *perception.States
	Recognizers voice.Recognizers // instead of those configured; may be nil

	URL            string                                  // of the appliance, for programs of this machine
	WyomingServers func(context.Context) ([]string, error) // on the network
	Log            *slog.Logger
}

// Agents holds the characters and what they understand, think and remember with.
type Agents struct {
	Characters *characters.Characters
	Passports  *characters.Passports
	Catalog    characters.Catalog
	Skills     *skill.Library
	Notifier   *notice.Notifier
	Talks      *vccp.ToolEndpoints // for coding agents
	Engines    engines.Current
	Mind       *agent.Mind
	Sentiment  func(text string) float64 // valence of a text, from -1 to 1
	Moods      *mood.Moods
	Diary      *diary.Diary

	brain drivers.Brain // what brains need besides their options
	o     Options
}

// New makes the agents of an appliance.
func New(o Options) (_ *Agents, err error) {
	c, a := o.Config(), &Agents{o: o}
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	publishStored(o.Bus, o.Memory, o.Timers)
	if err := a.newCharacters(c); err != nil {
		return nil, err
	}
	a.Notifier = notice.New(notice.Options{Store: o.Notices, Timers: o.Timers, Bus: o.Bus, Log: o.Log})
	a.Talks = vccp.NewToolEndpoints(o.Log)
	own := thinker.Options{Memory: o.Memory, Timers: o.Timers, Notify: a.Notifier.NotifyAll, Senses: o.Senses, Skills: a.Skills,
		Publish: o.Bus.Publish}
	a.brain = drivers.Brain{BrainSetup: thinker.BrainSetup{Options: own}, MayAnswer: o.Robots.Trusts, Skills: a.Skills,
		Lend: func() acp.ToolEndpoint { return a.Talks.Open(o.URL + "/mcp/talk") }}
	first, err := a.newEngines(c, nil)
	if err != nil {
		return nil, err
	}
	a.Engines.Replace(first)
	a.Mind = agent.NewMind(func() ([]agent.Brain, func()) {
		e, done := a.Engines.Acquire()
		return e.Brains, done
	}, o.Memory, o.Bus, o.Log)
	a.Mind.Restore(store.NewTable[agent.Conversation](o.DB, "conversations"))
	a.Mind.Complete(a.Characters.Complete)
	a.Characters.Replace(a.Characters)
	words, wrong := mood.ReadWords(datadir.Words(o.Data))
	if wrong != nil {
		o.Log.Warn("a list of words for moods is not used; correct it and restart the appliance", "err", wrong)
	}
	a.Sentiment = func(text string) float64 { return words.Analyse(text, o.Config().Language.First()).Valence }
	a.Moods = mood.New(mood.Options{Bus: o.Bus, Words: words, Off: func() bool { return o.Config().Mood == "off" }, Language: a.Characters.Language})
	a.Diary, err = diary.Open(diary.Options{Entries: store.NewTable[diary.Entry](o.DB, "diary"), Heads: store.NewTable[diary.Head](o.DB, "diary-head"),
		Key: o.Identity.Signer, Begins: o.Identity.SignerMade, Keep: c.Diary.Keep, Who: a.Characters.Who, Sentiment: a.Sentiment,
		Publish: o.Bus.Publish, Log: o.Log})
	return a, err
}

// newCharacters makes the characters, their skills and their passports.
func (a *Agents) newCharacters(c *config.Config) (err error) {
	o := a.o
	if a.Characters, err = characters.New(c, o.Robots, o.Data, o.Log); err != nil {
		return err
	}
	a.Skills, err = skills.New(skills.Options{Config: o.Config, Data: o.Data, Key: o.Identity.Signer, Memory: o.Memory,
		SkillsOf: a.Characters.SkillsOf, Publish: o.Bus.Publish, Log: o.Log})
	if err != nil {
		return err
	}
	a.Passports = characters.NewPassports(a.Characters, a.Skills.Names, o.DB, o.Bus, o.Identity.Installed)
	a.Catalog = characters.NewCatalog(a.Characters, a.Passports, a.Skills, o.Bus)
	return nil
}

// newEngines makes the engines of a configuration. It takes over those of before that the
// configuration leaves as they are.
func (a *Agents) newEngines(c *config.Config, before *engines.Set) (*engines.Set, error) {
	publish := func(e event.Event) { a.o.Bus.Publish("", "", e) }
	e, err := engines.New(before, c, a.brain, a.o.WyomingServers, publish, a.o.Log)
	if err == nil && a.o.Recognizers != nil {
		e.ReplaceRecognizers(a.o.Recognizers)
	}
	return e, err
}

// publishStored publishes changes of the memory and of timers.
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

// Close releases the engines and the skills.
func (a *Agents) Close() {
	if a.Talks != nil {
		a.Talks.Close()
	}
	a.Engines.Close()
	if a.Skills != nil {
		a.Skills.Close()
	}
}

// Phrase returns one of the appliance's own sentences in a language, or in the household's if tag is
// empty.
func (a *Agents) Phrase(tag, name string) string { return a.Engines.Engines().Phrase(tag, name) }

// PhraseFor returns one of the appliance's own sentences in a robot's language.
func (a *Agents) PhraseFor(id device.ID, name string) string {
	return a.Phrase(a.Characters.Language(id), name)
}

// Next holds the engines and characters of another configuration.
type Next struct {
	Engines    *engines.Set
	Characters *characters.Characters
	before     *engines.Set
}

// Next makes the engines and characters of a configuration that differs in the keys of changed. Either
// Replace makes them take effect, or Discard releases them.
func (a *Agents) Next(c *config.Config, changed []string) (n *Next, err error) {
	n = &Next{Characters: a.Characters, before: a.Engines.Engines()}
	if n.Engines, err = a.newEngines(c, n.before); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(changed, ofCharacters) {
		if n.Characters, err = characters.New(c, a.o.Robots, a.o.Data, a.o.Log); err != nil {
			n.Discard()
			return nil, err
		}
	}
	return n, nil
}

// ofCharacters reports whether characters depend on a key.
func ofCharacters(key string) bool {
	return slices.Contains([]string{"language", "speech", "brains", "persona", "characters", "robots.each"}, key)
}

// Discard releases what Next has made.
func (n *Next) Discard() { n.Engines.CloseNew(n.before) }

// Replace uses the characters and the engines of n for the next turns.
func (a *Agents) Replace(n *Next) {
	if n.Characters != a.Characters {
		a.Characters.Replace(n.Characters)
	}
	a.Engines.Replace(n.Engines)
}

// Retire releases the engines that n has replaced. No turn can begin with them any more.
func (a *Agents) Retire(n *Next) { a.Engines.Retire(n.before) }
