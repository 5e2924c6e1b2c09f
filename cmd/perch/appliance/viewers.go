package appliance

import (
	"cmp"
	"time"

	"perch/agent"
	"perch/agent/feed"
	"perch/agent/passport"
	"perch/cmd/perch/characters"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/gateway/character"
	"perch/gateway/hooks"
	"perch/gateway/openclaw"
	"perch/gateway/skin"
	"perch/gateway/vccp"
	"perch/store"
)

// newViewers makes what shows the agents, and what coding agents and viewers use.
func (a *Appliance) newViewers(c *config.Config) (err error) {
	if a.words, err = agent.NewWords(c.Skins.Vocabularies); err != nil {
		return err
	}
	driven, err := c.DrivenRobots()
	if err != nil {
		return err
	}
	a.hooks = hooks.New(hooks.Options{Robots: driven, Trusts: a.Robots.Trusts, Talk: a.Talk, Asker: a.Talk,
		// In the quiet hours questions are not spoken; screens and the terminal show them.
		MayAnswer: func(id device.ID) bool { return a.Robots.Trusts(id) && !a.quiet(time.Now()) }, Board: a.board, Bus: a.Bus,
		Language: a.Characters.Language, Log: a.Log})
	a.questions = hooks.NewQuestions(a.hooks, a.Talk)
	a.vccp = vccp.New(vccp.Options{Talk: a.control, Robots: a.Robots, Find: a.Robots.Find, Senses: a.Senses, Bus: a.Bus, Face: a.words.Face,
		UserTools: func() bool { return a.Config().Robots.UserTools }, Skills: a.Skills, Log: a.Log})
	a.closers = append(a.closers, a.vccp.Close)
	a.feed = feed.New(feed.Options{Board: a.board, Bus: a.Bus, Notices: a.Notices, Words: a.words, Log: a.Log})
	a.skins = skin.New(skin.Options{Feed: a.feed, Bus: a.Bus, Notifier: a.notifier, Robots: a.Robots, Find: a.Robots.Find, Mind: a.Mind,
		Questions: a.questions, Characters: a.Characters, System: c.Skins.System, Words: a.words, Vocabulary: c.Skins.Vocabulary,
		QueryToken: c.Skins.QueryToken, Language: a.Characters.Language, Zone: a.zone, Log: a.Log})
	if address := c.Skins.OpenClaw; address != "" {
		o := openclaw.Options{Feed: a.feed, Talks: a.skins, Characters: a.Characters, Name: func() string { return a.Config().Persona.Name },
			Version: a.options.Version, Log: a.Log}
		if !config.Loopback(address) {
			o.Token = a.locks.SkinsToken
		}
		a.openClaw = openclaw.New(o)
	}
	if err := a.newAvatars(); err != nil {
		return err
	}
	if err := a.newRelays(); err != nil {
		return err
	}
	a.passports = characters.NewPassports(a.Characters, a.Skills.Names, store.NewTable[passport.Passport](a.DB, "passports"), a.Bus,
		cmp.Or(a.identity.Installed, a.Started))
	a.character = character.New(character.Options{Bus: a.Bus, Log: a.actions, Who: a.Characters.Who, Robots: a.Robots, Find: a.Robots.Find,
		Passports: a.passports, Say: a.Talk.Say, Remember: a.Memory.Remember, Perform: a.Skills.Perform, Language: a.Characters.Language})
	return nil
}
