package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"perch/agent"
	"perch/agent/manifest"
	"perch/device"
	"perch/driver"
)

// Cast is a character with the engines of this appliance.
type Cast struct {
	agent.Persona
	First   string   // the brain that is tried first; empty for the household's
	Remarks []string // what its manifest asks for and it does not get, a sentence each
}

// Cast gives a character the engines of this appliance.
func (c *Config) Cast(id string, m manifest.Manifest, household agent.Persona) Cast {
	cast := Cast{Persona: agent.Persona{ID: id, Name: m.Name, Text: m.Instructions, Tools: m.Tools, MemoryTokens: m.MemoryTokens,
		Brain: agent.BrainOptions{Model: m.Brain.Model, Temperature: m.Brain.Temperature, MaxTokens: m.Brain.MaxTokens}},
		Remarks: slices.Clone(m.Remarks)}
	remark := func(format string, args ...any) { cast.Remarks = append(cast.Remarks, fmt.Sprintf(format, args...)) }
	if cast.Text == "" {
		cast.Text = household.Text
	}
	if unfit := c.Unfit(device.Settings{Language: m.Language}); len(unfit) > 0 {
		remark("It has the household's language: %s.", unfit[0].Err)
	} else {
		cast.Language = m.Language
		for _, missing := range c.Lacks(m.Language) {
			remark("Of its language: %s.", missing)
		}
	}
	c.castVoice(&cast, m.Voice, remark)
	c.castBrain(&cast, m.Brain, remark)
	return cast
}

// castVoice sets the character's voice, if the first synthesizer has it.
func (c *Config) castVoice(cast *Cast, v manifest.Voice, say func(string, ...any)) {
	if v.ID == "" || v.Provider == "browser" || v.Provider == manifest.None {
		return
	}
	if len(c.Speech.Synthesizers) == 0 || c.Speech.Synthesizers[0].Kind != v.Provider {
		say("The first synthesizer of this appliance is not %s: it speaks with the household's voice.", v.Provider)
		return
	}
	if unfit := c.Unfit(device.Settings{Voice: v.ID}); len(unfit) > 0 {
		say("It speaks with the household's voice: %s.", unfit[0].Err)
		return
	}
	cast.Voice = v.ID
}

// castBrain sets the first brain of the manifest's provider, or better one with its model.
func (c *Config) castBrain(cast *Cast, b manifest.Brain, say func(string, ...any)) {
	if b.Provider == manifest.None {
		cast.First = manifest.None
		return
	}
	if b.Provider == "" {
		if b.Model != "" {
			say("model %s of this manifest is not used: it names no provider, and has the household's brains.", b.Model)
		}
		return
	}
	names, best := c.brainNames(), -1
	for i, own := range c.Brains {
		if providerOf(own) != b.Provider {
			continue
		}
		if best < 0 || own.model() == b.Model && c.Brains[best].model() != b.Model {
			best = i
		}
	}
	if best < 0 {
		say("This appliance has no brain of the provider %s: its own answer; brains in the configuration adds one.", b.Provider)
		return
	}
	cast.First = names[best]
	own := c.Brains[best]
	if b.Model != "" && own.Kind != "reflex" && own.model() != b.Model {
		say("model %s of this manifest is not used: the brain %s of this appliance has another.", b.Model, cast.First)
	}
}

// model returns the name of the model of a brain that has one.
func (e Engine) model() string { return driver.Value[string](e.Options, "model") }

// providerOf returns what manifests call a brain's kind, or "" if they do not know it.
func providerOf(b Engine) string {
	switch b.Kind {
	case "anthropic":
		return manifest.Anthropic
	case "reflex":
		return manifest.Local
	case "openai":
		if u, err := url.Parse(driver.Value[string](b.Options, "url")); err == nil && ofHousehold(u.Hostname()) {
			return manifest.Local
		}
		return manifest.OpenAI
	}
	return ""
}

// ofHousehold reports whether a host is this machine or in the household's network.
func ofHousehold(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return host != "" && !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".lan")
}
