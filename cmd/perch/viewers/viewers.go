// Package viewers builds the servers and clients for programs that show or use the agents of an
// appliance: skins (screens that show an agent's state), avatar programs, hooks of coding agents,
// and viewers of characters.
package viewers

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"perch/agent"
	"perch/agent/action"
	"perch/agent/notice"
	"perch/agent/skill"
	"perch/cmd/perch/access"
	"perch/cmd/perch/characters"
	"perch/cmd/perch/config"
	"perch/cmd/perch/engines"
	"perch/cmd/perch/listener"
	"perch/cmd/perch/network"
	"perch/cmd/perch/parts"
	"perch/cmd/perch/robots"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar"
	"perch/gateway/avatar/aituber"
	"perch/gateway/avatar/character"
	"perch/gateway/avatar/feed"
	"perch/gateway/avatar/llmvtuber"
	"perch/gateway/avatar/openclaw"
	"perch/gateway/avatar/relay"
	"perch/gateway/avatar/skin"
	"perch/gateway/avatar/vccp"
	"perch/gateway/hooks"
	"perch/gateway/mdns"
	"perch/gateway/owner/admin"
	"perch/health"
	"perch/perception"
	"perch/store"
	"perch/voice"
)

// Options holds the parts of an appliance that viewers use.
type Options struct {
	Config     func() *config.Config // returns the current configuration
	Version    string
	DB         *store.DB
	Registry   *device.Registry
	Robots     robots.Control
	Bus        *event.Bus
	Board      *agent.Board
	Senses     *perception.States
	Mind       *agent.Mind
	Memory     *agent.Memory
	Skills     *skill.Library
	Notices    *notice.Store
	Notifier   *notice.Notifier
	Characters *characters.Characters
	Passports  *characters.Passports
	Sentiment  action.Sentiment // analyses the texts of conversations
	Gestures   perception.Gestures
	Loudness   *voice.Loudness // loudness of all speech
	Engines    *engines.Set
	Speech     voice.Options // language and voice for robots without settings
	// Quiet reports whether now is within the configured quiet hours.
	Quiet func(now time.Time) bool
	// SkinsToken returns an error unless token is the skins' key.
	SkinsToken func(remote, token string) error
	Network    *network.Network
	Zone       *time.Location
	Log        *slog.Logger
}

// Viewers holds the servers and clients for programs that show the agents.
type Viewers struct {
	Questions hooks.Questions // coding agents' questions that wait for an answer

	o         Options
	words     *agent.Words // names of faces in the vocabularies of skins
	actions   *action.Log
	hooks     *hooks.API
	vccp      *vccp.Server
	feed      *feed.Feed
	skins     *skin.Server
	openClaw  *openclaw.Server  // nil if it is off
	avatars   llmvtuber.Options // without the fields that avatarOptions sets
	llmvtuber *llmvtuber.Server
	aituber   *avatar.Server
	relays    *relay.Relays
	character *character.API
}

// New makes the servers and clients. Parts returns their Run methods.
func New(o Options) (*Viewers, error) {
	c, v := o.Config(), &Viewers{o: o}
	hookRobots, err := c.HookRobots()
	if err != nil {
		return nil, err
	}
	if v.words, err = agent.NewWords(c.Skins.Vocabularies); err != nil {
		return nil, err
	}
	v.actions = action.NewLog(o.Characters.Who, o.Sentiment)
	v.hooks = hooks.New(hooks.Options{Robots: hookRobots, Trusts: o.Registry.Trusts, Talk: o.Robots, Asker: o.Robots,
		// In the quiet hours questions are not spoken; screens and the terminal show them.
		MayAnswer: func(id device.ID) bool { return o.Registry.Trusts(id) && !o.Quiet(time.Now()) }, Board: o.Board, Bus: o.Bus,
		Language: o.Characters.Language, Log: o.Log})
	v.Questions = hooks.NewQuestions(v.hooks, o.Robots)
	v.vccp = vccp.New(vccp.Options{Control: o.Robots, Robots: o.Registry, Find: o.Registry.Resolve, Senses: o.Senses, Bus: o.Bus, Face: v.words.Face,
		UserTools: func() bool { return o.Config().Robots.UserTools }, Skills: o.Skills, Log: o.Log})
	v.feed = feed.New(feed.Options{Board: o.Board, Bus: o.Bus, Notices: o.Notices, Words: v.words, Log: o.Log})
	v.skins = skin.New(skin.Options{Feed: v.feed, Bus: o.Bus, Notifier: o.Notifier, Robots: o.Registry, Find: o.Registry.Resolve, Mind: o.Mind,
		Questions: v.Questions, Characters: o.Characters, System: c.Skins.System, Words: v.words, Vocabulary: c.Skins.Vocabulary,
		QueryToken: c.Skins.QueryToken, Language: o.Characters.Language, Zone: o.Zone, Loudness: o.Loudness, Log: o.Log})
	if address := c.Skins.OpenClaw; address != "" {
		openClaw := openclaw.Options{Feed: v.feed, Chat: v.skins, Characters: o.Characters,
			Name: o.Characters.Name, Version: o.Version, Log: o.Log}
		if !config.Loopback(address) {
			openClaw.Token = o.SkinsToken
		}
		v.openClaw = openclaw.New(openClaw)
	}
	v.avatars = llmvtuber.Options{Feed: v.feed, Chat: v.skins, Words: v.words, Loudness: o.Loudness, Log: o.Log}
	avatars, err := avatarOptions(v.avatars, c, o.Engines, o.Speech)
	if err != nil {
		return nil, err
	}
	v.llmvtuber = llmvtuber.New(avatars)
	v.aituber = aituber.New(aituber.Options{Feed: v.feed, Chat: v.skins, Words: v.words, Log: o.Log})
	v.relays, err = newRelays(c, relay.Options{Feed: v.feed, Bus: o.Bus, Words: v.words, Find: o.Registry.Resolve, Answer: v.Questions.Reply, Voice: o.Loudness,
		Tokens: store.NewTable[string](o.DB, "relay-tokens"), Gestures: o.Gestures.Names(), Name: c.Name, Network: o.Network,
		Log: o.Log})
	if err != nil {
		return nil, err
	}
	v.character = character.New(character.Options{Bus: o.Bus, Log: v.actions, Who: o.Characters.Who, Robots: o.Registry, Board: o.Board, Find: o.Registry.Resolve,
		Passports: o.Passports, Say: o.Robots.Speak, Remember: o.Memory.Remember, Perform: o.Skills.Perform, Language: o.Characters.Language})
	return v, nil
}

// Apply makes the relays and the avatar programs use a new configuration and its engines. If it
// returns an error, nothing has changed.
func (v *Viewers) Apply(c *config.Config, e *engines.Set, speech voice.Options) error {
	avatars, err := avatarOptions(v.avatars, c, e, speech)
	if err != nil {
		return err
	}
	if err := v.relays.Apply(c.Relays); err != nil {
		return err
	}
	v.llmvtuber.Apply(avatars)
	return nil
}

// Close ends the sessions of VCCP: those of models and of characters.
func (v *Viewers) Close() { v.vccp.Close() }

// Parts returns the parts of the appliance that run the servers and clients. The condition of the
// server for OpenClaw's programs shows the addresses of this server in l.
func (v *Viewers) Parts(l *listener.Set) []parts.Part {
	return []parts.Part{
		{Run: parts.Infallible(v.feed.Run)},
		{Run: parts.Infallible(v.skins.Run)},
		{Run: parts.Infallible(v.llmvtuber.Run)},
		{Run: parts.Infallible(v.aituber.Run)},
		{Run: parts.Infallible(v.relays.Run), Conditions: func() []health.Part { return relayConditions(v.relays.List()) }},
		parts.When(v.openClaw != nil, parts.Part{Run: parts.Infallible(v.openClaw.Run), Conditions: parts.SingleCondition(func() health.Part {
			return v.openClaw.Condition(l.At(listener.OpenClaw))
		})}),
		{Run: parts.Infallible(v.hooks.Run)},
		{Run: parts.Infallible(func(ctx context.Context) { v.actions.Run(ctx, v.o.Bus.ReadFrom(1)) })},
		{Run: parts.Infallible(v.character.Run)},
		{Run: parts.Infallible(v.vccp.Run), End: v.vccp.Close}, // streams of clients end only when the server is closed
	}
}

// Mount adds the routes of the servers to p.
func (v *Viewers) Mount(p *access.Parts) {
	p.Owner = append(p.Owner, v.relays.Routes, v.character.OwnerRoutes)
	p.Skin = v.skins.Routes
	p.Skins = append(p.Skins, v.hooks.Routes, v.vccp.Routes)
	p.Upgrades = append(p.Upgrades, v.vccp.CharacterRoutes, v.llmvtuber.Routes, v.aituber.Routes)
	p.VCCP = []access.Mount{v.vccp.Routes, v.vccp.CharacterRoutes}
	p.Character = v.character.Routes
	p.QueryToken = v.o.Config().Skins.QueryToken
	if v.openClaw != nil {
		p.OpenClaw = v.openClaw.Routes
	}
}

// Offers returns the services of the relays to announce on the network.
func (v *Viewers) Offers() []mdns.Offer { return v.relays.Offers() }

// Connections returns the connected programs.
func (v *Viewers) Connections() admin.Connections {
	c := admin.Connections{Skins: []admin.Skin{}, Agents: []admin.CodingAgent{}, Relays: []admin.Relay{}}
	for _, s := range v.skins.Skins() {
		c.Skins = append(c.Skins, admin.Skin{Kind: "skin", Address: s.Address, Since: s.Since})
	}
	for _, s := range v.vccp.Connected() {
		c.Skins = append(c.Skins, admin.Skin{Kind: "character", Address: s.Address, Since: s.Since})
	}
	for _, s := range v.hooks.Sessions() {
		c.Agents = append(c.Agents, admin.CodingAgent{Name: s.Agent, ID: s.ID, Session: s.Session, State: s.State, Since: s.Began, Seen: s.Seen})
	}
	for _, r := range v.relays.List() {
		c.Relays = append(c.Relays, admin.Relay{Name: r.Name, Title: r.Title, OK: r.OK, Note: cmp.Or(r.Note, r.URL), Since: r.Since})
	}
	return c
}

// avatarOptions returns o with the values of a configuration and its engines, for the server for avatar
// programs.
func avatarOptions(o llmvtuber.Options, c *config.Config, e *engines.Set, speech voice.Options) (llmvtuber.Options, error) {
	o.Name, o.Speech, o.Hold = c.Persona.Name, speech, e.Acquire
	if file := c.Skins.Model; file != "" {
		model, err := file.Read()
		if err != nil {
			return o, fmt.Errorf("skins.live2d_model: %w", err)
		}
		o.Model = model
	}
	if len(e.Recognizers) > 0 {
		o.Recognizer = e.Recognizers
	}
	if len(e.Synthesizers) > 0 {
		o.Synthesizer = e.Synthesizers
	}
	return o, nil
}

// newRelays makes the relays: clients that connect to avatar programs to show the agents there.
func newRelays(c *config.Config, o relay.Options) (*relay.Relays, error) {
	if home, err := os.UserHomeDir(); err == nil {
		o.Home = home // without a home directory the owner configures each address
	}
	o.Targets = c.Relays
	return relay.New(o)
}

func relayConditions(relays []relay.Status) (all []health.Part) {
	for _, r := range relays {
		part := health.Part{Name: "relay " + r.Name, OK: r.OK, Since: r.Since, Note: r.Note}
		if part.Note == "" {
			part = part.Saying(fmt.Sprintf("%s at %s", r.Title, r.URL))
		}
		all = append(all, part)
	}
	return all
}
