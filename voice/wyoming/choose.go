package wyoming

import (
	"fmt"
	"slices"
	"strings"

	"perch/voice"
)

// chooseRecognizer returns the request for speech to text, with the model and language to
// use, or an error if the server cannot fulfil it.
func (s *server) chooseRecognizer(info Info, o voice.Options) (Transcribe, error) {
	if len(info.ASR) == 0 {
		return Transcribe{}, s.newFault("it serves no speech to text, only text to speech; give the address of a recognizer", errNotServed)
	}
	var models []Model
	for _, p := range info.ASR {
		models = append(models, p.Models...)
	}
	t := Transcribe{Name: s.o.Model}
	if s.o.Model != "" && len(models) > 0 {
		m, ok := findModel(models, s.o.Model)
		if !ok {
			return Transcribe{}, s.newFault(fmt.Sprintf("it has no model %q; it has %s", printable(s.o.Model), names(models)), errNotServed)
		}
		t.Name, models = m.Name, []Model{m}
	}
	if o.DetectLanguage {
		return t, nil // the server detects the language
	}
	var ok bool
	if t.Language, ok = matchLanguage(models, o.Language); !ok {
		return Transcribe{}, s.newFault(fmt.Sprintf("it does not recognize the language %q; it knows %s",
			printable(o.Language), languages(models)), errLanguage)
	}
	return t, nil
}

// synthesizer is a voice of a server.
type synthesizer struct {
	voice     *Voice // nil means the server's default
	streaming bool   // whether the server accepts text in pieces
}

// chooseSynthesizer returns the voice to use. It is the voice o.Voice if the server has that voice;
// if not, the name may belong to another engine. Otherwise it is the voice in the engine's options
// or, if the options name none, any voice for the language. chooseSynthesizer returns an error if
// the server lists voices but not the one in the engine's options, if this voice does not speak the
// language (see Options.Language), or if no voice speaks the language.
func (s *server) chooseSynthesizer(info Info, o voice.Options) (synthesizer, error) {
	if len(info.TTS) == 0 {
		return synthesizer{}, s.newFault("it serves no text to speech, only speech to text; give the address of a synthesizer", errNotServed)
	}
	var all []Model
	for _, name := range []string{o.Voice, s.o.Voice} {
		for _, p := range info.TTS {
			all = append(all, p.voices()...)
			if v, ok := findModel(p.voices(), name); ok {
				if _, speaks := matchLanguage([]Model{v}, o.Language); name != o.Voice && !speaks && s.isForeign(o.Language) {
					return synthesizer{}, s.newFault(fmt.Sprintf("its voice %q does not speak the language %q, only %s",
						printable(v.Name), printable(o.Language), languages([]Model{v})), errLanguage)
				}
				return synthesizer{&Voice{Name: v.Name}, p.SynthesizeStreaming}, nil
			}
		}
	}
	first := info.TTS[0]
	if s.o.Voice != "" {
		if len(all) > 0 {
			return synthesizer{}, s.newFault(fmt.Sprintf("it has no voice %q; it has %s", printable(s.o.Voice), names(all)), errNotServed)
		}
		return synthesizer{&Voice{Name: s.o.Voice}, first.SynthesizeStreaming}, nil
	}
	if o.Language == "" {
		return synthesizer{nil, first.SynthesizeStreaming}, nil
	}
	for _, p := range info.TTS {
		if tag, ok := matchLanguage(p.voices(), o.Language); ok {
			return synthesizer{&Voice{Language: tag}, p.SynthesizeStreaming}, nil
		}
	}
	return synthesizer{}, s.newFault(fmt.Sprintf("it has no voice for the language %q, only for %s",
		printable(o.Language), languages(all)), errLanguage)
}

// isForeign reports whether a language differs from Options.Language. It returns false if
// Options.Language is empty.
func (s *server) isForeign(language string) bool {
	return s.o.Language != "" && voice.BaseLanguage(language) != voice.BaseLanguage(s.o.Language)
}

// voices returns the voices of a program for text to speech, from both fields that may hold them.
func (p Program) voices() []Model { return append(slices.Clip(p.Voices), p.Models...) }

// findModel returns the model with this name, ignoring case. It finds nothing for an empty name.
func findModel(models []Model, name string) (Model, bool) {
	i := slices.IndexFunc(models, func(m Model) bool { return name != "" && strings.EqualFold(m.Name, name) })
	if i < 0 {
		return Model{}, false
	}
	return models[i], true
}

// matchLanguage returns the models' language for a tag, as the server spells the language: for
// en-GB this may be en_GB, en or, for example, en_US. If no model lists a matching language, but a
// model lists no languages or supports all of them, or there are no models, matchLanguage returns
// the tag. ok is false if no model supports the language. An empty tag matches.
func matchLanguage(models []Model, tag string) (language string, ok bool) {
	if tag == "" {
		return "", true
	}
	wanted, similar, acceptsAny := normalize(tag), "", len(models) == 0
	primary, _, _ := strings.Cut(wanted, "-")
	for _, m := range models {
		acceptsAny = acceptsAny || len(m.Languages) == 0
		for _, listed := range m.Languages {
			l := normalize(listed)
			base, _, _ := strings.Cut(l, "-")
			switch {
			case l == wanted:
				return listed, true
			case l == "*" || l == "auto" || l == "mul" || l == "multilingual":
				acceptsAny = true
			case l == primary, base == primary && similar == "":
				similar = listed
			}
		}
	}
	if similar != "" {
		return similar, true
	}
	return tag, acceptsAny
}

// normalize returns a language tag in lower case with hyphens.
func normalize(tag string) string { return strings.ToLower(strings.ReplaceAll(tag, "_", "-")) }

// names returns the names of models for a message.
func names(models []Model) string {
	return listTexts(models, func(m Model) []string { return []string{m.Name} })
}

// languages returns the languages of models for a message.
func languages(models []Model) string {
	return listTexts(models, func(m Model) []string { return m.Languages })
}

// listTexts returns the first few texts of models, without duplicates and separated by commas.
func listTexts(models []Model, texts func(Model) []string) string {
	const maxTexts = 8
	var list []string
	for _, m := range models {
		for _, s := range texts(m) {
			if s = printable(s); slices.Contains(list, s) {
				continue
			}
			if len(list) == maxTexts {
				return strings.Join(list, ", ") + " and more"
			}
			list = append(list, s)
		}
	}
	return strings.Join(list, ", ")
}
