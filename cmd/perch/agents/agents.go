// Package agents builds everything that answers a user: the characters with their skills, moods and
// diary, the engines, and the mind that chooses a brain for each turn.
package agents

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

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

// Options holds the parts of an appliance that its agents use.
type Options struct {
	Config      func() *config.Config // returns the current configuration
	Data        string                // the data directory
	DB          *store.DB
	Identity    *datadir.Identity
	Robots      *device.Registry
	Memory      *agent.Memory
	Notices     *notice.Store
	Timers      *notice.Timers
	Bus         *event.Bus
	Senses      *perception.States
	Gestures    []string          // names of the gestures that robots can make
	Recognizers voice.Recognizers // replaces the configured recognizers; may be nil

	URL            string                                  // base URL of the appliance for programs on this machine
	WyomingServers func(context.Context) ([]string, error) // returns the addresses of Wyoming servers on the network
	Log            *slog.Logger
}

// Agents holds the characters, their engines and brains, and their stored state.
type Agents struct {
	Characters *characters.Characters
	Passports  *characters.Passports
	Catalog    characters.Catalog
	Skills     *skill.Library
	Notifier   *notice.Notifier
	Talks      *vccp.ToolEndpoints // offers tools to coding agents
	Engines    engines.Current
	Mind       *agent.Mind
	Sentiment  func(text string) float64 // returns how positive the feeling in a text is, from -1 to 1
	Moods      *mood.Moods
	Diary      *diary.Diary

	brain drivers.Brain // passed to the constructor of every brain, with the brain's own options
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
	a.Notifier = notice.New(notice.Options{Store: o.Notices, Timers: o.Timers, Bus: o.Bus, Missed: a.missed, Log: o.Log})
	a.Talks = vccp.NewToolEndpoints(o.Log)
	thinking := thinker.Options{Memory: o.Memory, Timers: o.Timers, Notify: a.Notifier.NotifyAll, Senses: o.Senses, Skills: a.Skills,
		Publish: o.Bus.Publish, Gestures: a.gestures}
	a.brain = drivers.Brain{BrainSetup: thinker.BrainSetup{Options: thinking}, MayAnswer: o.Robots.Trusts, Skills: a.Skills,
		Lend: func() acp.ToolEndpoint { return a.Talks.Open(o.URL + "/mcp/talk") }}
	set, err := a.newEngines(c, nil)
	if err != nil {
		return nil, err
	}
	a.Engines.Replace(set)
	a.Mind = agent.NewMind(func() ([]agent.Brain, func()) {
		e, release := a.Engines.Acquire()
		return e.Brains, release
	}, o.Memory, o.Bus, o.Log)
	a.Mind.Restore(store.NewTable[agent.Conversation](o.DB, "conversations"))
	a.Mind.CompleteTurns(a.Characters.Complete)
	a.Characters.Replace(a.Characters)
	words, wordsErr := mood.ReadWords(datadir.Words(o.Data))
	if wordsErr != nil {
		o.Log.Warn("a list of words for moods is not used; correct it and restart the appliance", "err", wordsErr)
	}
	a.Sentiment = func(text string) float64 { return words.Analyse(text, o.Config().Language.First()).Valence }
	a.Moods = mood.New(mood.Options{Bus: o.Bus, Words: words, Off: func() bool { return o.Config().Mood == "off" }, Language: a.Characters.Language})
	a.Diary, err = diary.Open(diary.Options{Entries: store.NewTable[diary.Entry](o.DB, "diary"), Heads: store.NewTable[diary.Head](o.DB, "diary-head"),
		Key: o.Identity.Signer, Begins: o.Identity.SignerMade, Keep: c.Diary.Keep, Who: a.Characters.Who, Sentiment: a.Sentiment,
		Publish: o.Bus.Publish, Log: o.Log})
	return a, err
}

// gestures returns the names of the gestures that robots can make, and of the gestures that the
// configuration adds to the words of avatar programs.
func (a *Agents) gestures() []string {
	names := slices.Clone(a.o.Gestures)
	for _, relay := range a.o.Config().Relays {
		for _, key := range slices.Sorted(maps.Keys(relay.Words)) {
			if name, ok := strings.CutPrefix(key, "gesture."); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
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

// newEngines makes the engines of a configuration. It reuses the engines of current whose settings
// have not changed. current may be nil.
func (a *Agents) newEngines(c *config.Config, current *engines.Set) (*engines.Set, error) {
	publish := func(e event.Event) { a.o.Bus.Publish("", "", e) }
	e, err := engines.New(current, c, a.brain, a.o.WyomingServers, publish, a.o.Log)
	if err == nil && a.o.Recognizers != nil {
		e.ReplaceRecognizers(a.o.Recognizers)
	}
	return e, err
}

// publishStored publishes an event for each change of the memory and of the timers.
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

// missed returns the sentence for an alarm that did not ring, in the robot's language.
func (a *Agents) missed(t agent.Timer) string {
	words := a.Engines.Engines().Words(a.Characters.Language(t.Robot))
	return words.Message("alarm.missed", "time", words.Time(t.Due), "text", t.Text)
}

// Close closes the conversations of coding agents, the engines and the skills.
func (a *Agents) Close() {
	if a.Talks != nil {
		a.Talks.Close()
	}
	a.Engines.Close()
	if a.Skills != nil {
		a.Skills.Close()
	}
}

// Phrase returns one of the appliance's fixed sentences in the language of tag (BCP 47), or in the
// first configured language if tag is empty. name is the name of the sentence, such as "cut_off".
func (a *Agents) Phrase(tag, name string) string { return a.Engines.Engines().Phrase(tag, name) }

// PhraseFor returns one of the appliance's fixed sentences in a robot's language.
func (a *Agents) PhraseFor(id device.ID, name string) string {
	return a.Phrase(a.Characters.Language(id), name)
}

// Next holds the engines and characters made from a configuration that is not in use yet.
type Next struct {
	Engines    *engines.Set
	Characters *characters.Characters
	previous   *engines.Set // the engines in use when Next was made
}

// Next makes the engines and characters of a configuration that differs from the current one in
// the keys of changed. The caller passes the result to Replace, or calls Discard to release it.
func (a *Agents) Next(c *config.Config, changed []string) (n *Next, err error) {
	n = &Next{Characters: a.Characters, previous: a.Engines.Engines()}
	if n.Engines, err = a.newEngines(c, n.previous); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(changed, affectsCharacters) {
		if n.Characters, err = characters.New(c, a.o.Robots, a.o.Data, a.o.Log); err != nil {
			n.Discard()
			return nil, err
		}
	}
	return n, nil
}

// affectsCharacters reports whether characters depend on a configuration key.
func affectsCharacters(key string) bool {
	return slices.Contains([]string{"language", "speech", "brains", "persona", "characters", "robots.each"}, key)
}

// Discard closes the engines that were made for n.
func (n *Next) Discard() { n.Engines.CloseNew(n.previous) }

// Replace makes the next turns use the characters and engines of n.
func (a *Agents) Replace(n *Next) {
	if n.Characters != a.Characters {
		a.Characters.Replace(n.Characters)
	}
	a.Engines.Replace(n.Engines)
}

// Retire closes the engines that n has replaced, once the turns that use them have ended.
func (a *Agents) Retire(n *Next) { a.Engines.Retire(n.previous) }
