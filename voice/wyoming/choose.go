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

// chooseSynthesizer returns the voice to use: the voice that the call names, unless the server
// does not have it (because the name is for another engine), or else the voice in the engine's
// options, or else any voice for the language. It returns an error if the server has no such
// voice (a server that lists no voices may have it), or if the voice in the engine's options does
// not speak the language; see Options.Language.
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

// isForeign reports whether a language is another one than the household's.
func (s *server) isForeign(language string) bool {
	return s.o.Language != "" && voice.BaseLanguage(language) != voice.BaseLanguage(s.o.Language)
}

// voices returns the voices of a program for text to speech.
func (p Program) voices() []Model { return append(slices.Clip(p.Voices), p.Models...) }

// findModel returns the model with this name, ignoring case.
func findModel(models []Model, name string) (Model, bool) {
	i := slices.IndexFunc(models, func(m Model) bool { return name != "" && strings.EqualFold(m.Name, name) })
	if i < 0 {
		return Model{}, false
	}
	return models[i], true
}

// matchLanguage returns the models' language for a tag, as the server spells it: for en-GB it
// may be en_GB, en or, for example, en_US. If no model lists a matching language, but a model
// lists no languages or supports all, it returns the tag. ok is false if no model supports the
// language.
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
