package config

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"perch/driver"
	"perch/health"
	"perch/voice/wyoming"
)

// PerchSpeech knows what perch-speech offers, if that program runs on this machine. It is safe for concurrent use.
type PerchSpeech struct {
	Address string        // where perch-speech is expected: tcp://host:port
	Every   time.Duration // time between two looks at what it offers, while the appliance runs

	mu     sync.Mutex
	looked bool
	seen   wyoming.Offer // at the latest look
	offer  wyoming.Offer // that counts
}

// answerWithin is how long perch-speech may take to say what it offers.
const answerWithin = 2 * time.Second

// Look asks perch-speech what it offers, and reports whether that has changed. A change counts at the second look, because
// perch-speech may just be starting again. If perch-speech does not answer, nothing has changed.
func (p *PerchSpeech) Look(ctx context.Context) (changed bool) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	offer, err := wyoming.AskPerchSpeech(ctx, p.Address)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.looked = true
		return false
	}
	counts := !p.looked || reflect.DeepEqual(offer, p.seen)
	p.looked, p.seen = true, offer
	if !counts || reflect.DeepEqual(offer, p.offer) {
		return false
	}
	p.offer = offer
	return true
}

// latest returns what perch-speech offered at the last Look. The first call looks itself.
func (p *PerchSpeech) latest() wyoming.Offer {
	p.mu.Lock()
	looked := p.looked
	p.mu.Unlock()
	if !looked {
		p.Look(context.Background())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.offer
}

// add puts perch-speech before the default engines of the lists in speech that are not configured, if it offers a language that
// people speak. A configured voice belongs to the default synthesizer, which then stays the first.
func (p *PerchSpeech) add(k *checker, c *Config) {
	offer := p.latest()
	if c.speaksAny(offer.Hears) && k.isDefault("speech.recognizers") {
		c.Speech.Recognizers = append(Recognizers{{"wyoming", &wyoming.RecognizerKeys{URL: p.Address}}}, c.Speech.Recognizers...)
	}
	if c.speaksAny(offer.Speaks) && k.isDefault("speech.synthesizers") && !c.hasVoice() {
		c.Speech.Synthesizers = append(Synthesizers{{"wyoming", &wyoming.SynthesizerKeys{URL: p.Address}}}, c.Speech.Synthesizers...)
	}
}

// speaksAny reports whether a model supports a language that people speak.
func (c *Config) speaksAny(models []wyoming.Model) bool {
	return slices.ContainsFunc(c.spoken(), func(language string) bool { return wyoming.HasLanguage(models, language) })
}

// isDefault reports whether no key of a list is configured.
func (k *checker) isDefault(list string) bool {
	_, isSet := k.lines[list]
	return !isSet && len(k.keysBelow(list)) == 0
}

// hasVoice reports whether the configuration names a voice for the first synthesizer.
func (c *Config) hasVoice() bool {
	persona, err := Persona(c)
	return err == nil && persona.Voice != "" || slices.ContainsFunc(c.Robots.Each, func(r Robot) bool { return r.Voice != "" })
}

// Conditions returns what perch-speech offers and whether c uses it, or nothing if perch-speech does not run on this machine.
func (p *PerchSpeech) Conditions(c *Config) (parts []health.Part) {
	offer := p.latest()
	add := func(name string, models []wyoming.Model, key string, list []Engine, hasVoice bool) {
		if len(models) == 0 {
			return
		}
		part, names := health.Part{Name: name, OK: true}, wyoming.Names(models)
		switch {
		case driver.Value[string](list[0].Options, "url") == p.Address:
			part.Note = fmt.Sprintf("robots use its %s", names)
		case !c.speaksAny(models):
			part.Note = fmt.Sprintf("robots do not use its %s, which is for none of their languages", names)
		case hasVoice:
			part.Note = fmt.Sprintf("robots do not use its %s, because the configuration names another voice", names)
		default:
			part.Note = fmt.Sprintf("robots do not use its %s, because %s is configured and begins with another engine", names, key)
		}
		parts = append(parts, part)
	}
	add("perch-speech synthesizer", offer.Speaks, "speech.synthesizers", c.Speech.Synthesizers, c.hasVoice())
	add("perch-speech recognizer", offer.Hears, "speech.recognizers", c.Speech.Recognizers, false)
	return parts
}
