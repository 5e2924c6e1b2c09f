package wyoming

import (
	"fmt"
	"slices"
	"strings"

	"perch/voice"
)

// chooseRecognizer makes the request for speech to text.
func (s *server) chooseRecognizer(info Info, o voice.Options) (Transcribe, error) {
	if len(info.ASR) == 0 {
		return Transcribe{}, s.faulty("it serves no speech to text, only text to speech; give the address of a recognizer", errNotServed)
	}
	var models []Model
	for _, p := range info.ASR {
		models = append(models, p.Models...)
	}
	t := Transcribe{Name: s.o.Model}
	if s.o.Model != "" && len(models) > 0 {
		m, ok := findModel(models, s.o.Model)
		if !ok {
			return Transcribe{}, s.faulty(fmt.Sprintf("it has no model %q; it has %s", printable(s.o.Model), names(models)), errNotServed)
		}
		t.Name, models = m.Name, []Model{m}
	}
	if o.Detect {
		return t, nil // the server detects it
	}
	var ok bool
	if t.Language, ok = matchLanguage(models, o.Language); !ok {
		return Transcribe{}, s.faulty(fmt.Sprintf("it does not recognize the language %q; it knows %s",
			printable(o.Language), languages(models)), errLanguage)
	}
	return t, nil
}

// synthesizer is a chosen voice.
type synthesizer struct {
	voice     *Voice // nil leaves it to the server
	streaming bool   // the server accepts text in pieces
}

// chooseSynthesizer chooses a voice: the call's if the server has it (the name may be
// meant for another engine), else the engine's, else the server's choice for the
// language.
func (s *server) chooseSynthesizer(info Info, o voice.Options) (synthesizer, error) {
	if len(info.TTS) == 0 {
		return synthesizer{}, s.faulty("it serves no text to speech, only speech to text; give the address of a synthesizer", errNotServed)
	}
	var all []Model
	for _, name := range []string{o.Voice, s.o.Voice} {
		for _, p := range info.TTS {
			all = append(all, p.voices()...)
			if v, ok := findModel(p.voices(), name); ok {
				return synthesizer{&Voice{Name: v.Name}, p.SynthesizeStreaming}, nil
			}
		}
	}
	first := info.TTS[0]
	if s.o.Voice != "" {
		if len(all) > 0 {
			return synthesizer{}, s.faulty(fmt.Sprintf("it has no voice %q; it has %s", printable(s.o.Voice), names(all)), errNotServed)
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
	return synthesizer{}, s.faulty(fmt.Sprintf("it has no voice for the language %q, only for %s",
		printable(o.Language), languages(all)), errLanguage)
}

func (p Program) voices() []Model { return append(slices.Clip(p.Voices), p.Models...) }

// findModel finds a model by its name, in any case.
func findModel(models []Model, name string) (Model, bool) {
	i := slices.IndexFunc(models, func(m Model) bool { return name != "" && strings.EqualFold(m.Name, name) })
	if i < 0 {
		return Model{}, false
	}
	return models[i], true
}

// matchLanguage returns a language as the server spells it: en-GB may be en_GB there, or en,
// or another English. A model that lists no language, or claims to know any, accepts tag.
func matchLanguage(models []Model, tag string) (string, bool) {
	if tag == "" {
		return "", true
	}
	wanted, near, any := normalized(tag), "", len(models) == 0
	primary, _, _ := strings.Cut(wanted, "-")
	for _, m := range models {
		any = any || len(m.Languages) == 0
		for _, listed := range m.Languages {
			l := normalized(listed)
			base, _, _ := strings.Cut(l, "-")
			switch {
			case l == wanted:
				return listed, true
			case l == "*" || l == "auto" || l == "mul" || l == "multilingual":
				any = true
			case l == primary, base == primary && near == "":
				near = listed
			}
		}
	}
	if near != "" {
		return near, true
	}
	return tag, any
}

func normalized(tag string) string { return strings.ToLower(strings.ReplaceAll(tag, "_", "-")) }

// names lists a few models for a sentence.
func names(models []Model) string {
	return listFew(models, func(m Model) []string { return []string{m.Name} })
}

func languages(models []Model) string {
	return listFew(models, func(m Model) []string { return m.Languages })
}

// listFew lists the first few distinct texts of models.
func listFew(models []Model, of func(Model) []string) string {
	const most = 8
	var kept []string
	for _, m := range models {
		for _, s := range of(m) {
			if s = printable(s); slices.Contains(kept, s) {
				continue
			}
			if len(kept) == most {
				return strings.Join(kept, ", ") + " and more"
			}
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, ", ")
}
