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

// ResolvedCharacter is a character whose voice and brain are engines of this appliance.
type ResolvedCharacter struct {
	agent.Persona
	First   string   // name of the brain that is tried first; empty for the order in the configuration, manifest.None for no brain
	Remarks []string // sentences for the owner, such as about an engine of the manifest that this appliance does not have
}

// ResolveCharacter returns the character of a manifest with the engines of this appliance. defaults
// is the persona of robots without a character; its text is used if the manifest has none.
func (c *Config) ResolveCharacter(id string, m manifest.Manifest, defaults agent.Persona) ResolvedCharacter {
	character := ResolvedCharacter{Persona: agent.Persona{ID: id, Name: m.Name, Text: m.Instructions,
		Mute: m.Voice.Provider == manifest.None, Deaf: m.Recognizer == manifest.None, Clips: m.Clips, Tools: m.Tools, MemoryTokens: m.MemoryTokens, Memory: m.Memory,
		Brain: agent.BrainOptions{Model: m.Brain.Model, Temperature: m.Brain.Temperature, MaxTokens: m.Brain.MaxTokens}},
		Remarks: slices.Clone(m.Remarks)}
	remark := func(format string, args ...any) {
		character.Remarks = append(character.Remarks, fmt.Sprintf(format, args...))
	}
	if character.Text == "" {
		character.Text = defaults.Text
	}
	if unfit := c.Unfit(device.Settings{Language: m.Language}); len(unfit) > 0 {
		remark("It speaks the household's language: %s.", unfit[0].Err)
	} else {
		character.Language = m.Language
		for _, missing := range c.Lacks(m.Language) {
			remark("About its language: %s.", missing)
		}
	}
	c.resolveVoice(&character, m.Voice, remark)
	c.resolveBrain(&character, m.Brain, remark)
	return character
}

// resolveVoice sets the character's voice if the first synthesizer has the voice of the manifest.
// Otherwise it may add a remark.
func (c *Config) resolveVoice(character *ResolvedCharacter, v manifest.Voice, remark func(string, ...any)) {
	if v.ID == "" || v.Provider == "browser" || v.Provider == manifest.None {
		return
	}
	if len(c.Speech.Synthesizers) == 0 || c.Speech.Synthesizers[0].Kind != v.Provider {
		remark("The first synthesizer of this appliance is not %s: it speaks with the household's voice.", v.Provider)
		return
	}
	if unfit := c.Unfit(device.Settings{Voice: v.ID}); len(unfit) > 0 {
		remark("It speaks with the household's voice: %s.", unfit[0].Err)
		return
	}
	character.Voice = v.ID
}

// resolveBrain sets character.First to a brain of the manifest's provider with the manifest's model, or
// else to the first brain of that provider, or, for the provider manifest.OpenAI, to the first brain of the
// kind openai. If the provider is manifest.None, First is manifest.None. If the manifest names no provider, or
// there is no such brain, First remains empty.
func (c *Config) resolveBrain(character *ResolvedCharacter, b manifest.Brain, remark func(string, ...any)) {
	if b.Provider == manifest.None {
		character.First = manifest.None
		return
	}
	if b.Provider == "" {
		if b.Model != "" {
			remark("model %s of this manifest is not used: the manifest names no provider, so the household's brains reply.", b.Model)
		}
		return
	}
	names, best := c.BrainNames(), -1
	for i, brain := range c.Brains {
		if providerOf(brain) != b.Provider {
			continue
		}
		if best < 0 || brain.model() == b.Model && c.Brains[best].model() != b.Model {
			best = i
		}
	}
	if best < 0 && b.Provider == manifest.OpenAI { // a server in the local network with OpenAI's API
		best = slices.IndexFunc(c.Brains, func(brain Engine) bool { return brain.Kind == "openai" })
	}
	if best < 0 {
		remark("This appliance has no brain of the provider %s, so its own brains reply. Add one to brains in the configuration.", b.Provider)
		return
	}
	character.First = names[best]
	if brain := c.Brains[best]; b.Model != "" && brain.Kind != "reflex" && brain.model() != b.Model {
		remark("model %s of this manifest is not used: the brain %s of this appliance has another model.", b.Model, character.First)
	}
}

// model returns the name of a brain's model, or "" if brains of its kind have no such option.
func (e Engine) model() string { return driver.Value[string](e.Options, "model") }

// providerOf returns the name of a brain's provider in manifests, or "" for kinds that manifests
// cannot name.
func providerOf(b Engine) string {
	switch b.Kind {
	case "anthropic":
		return manifest.Anthropic
	case "reflex":
		return manifest.Local
	case "openai":
		if u, err := url.Parse(driver.Value[string](b.Options, "url")); err == nil && isLocalHost(u.Hostname()) {
			return manifest.Local
		}
		return manifest.OpenAI
	}
	return ""
}

// isLocalHost reports whether a host is this machine or in a local network.
func isLocalHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return host != "" && !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".lan")
}
