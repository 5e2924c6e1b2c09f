package wyoming

import (
	"fmt"
	"slices"
	"strings"

	"perch/voice"
	wire "perch/voice/wyoming"
)

// maker is the attribution of Perch itself.
func maker() wire.Attribution { return wire.Attribution{Name: "Perch"} }

// recognizers returns the recognizers that the options offer.
func recognizers(o Options) []Model[voice.Recognizer] {
	if len(o.Recognizers) > 0 || o.Recognizer == nil {
		return o.Recognizers
	}
	return []Model[voice.Recognizer]{{wire.Model{Name: o.Recognizer.Name(), Attribution: maker(), Version: o.Version,
		Description: o.Recognizer.Name(), Languages: o.RecognizerLanguages}, o.Recognizer}}
}

// synthesizers returns the synthesizers that the options offer.
func synthesizers(o Options) []Model[voice.Synthesizer] {
	if len(o.Synthesizers) > 0 || o.Synthesizer == nil {
		return o.Synthesizers
	}
	return []Model[voice.Synthesizer]{{wire.Model{Name: o.Synthesizer.Name(), Attribution: maker(), Version: o.Version,
		Description: o.Name, Languages: o.Languages}, o.Synthesizer}}
}

func languages[E any](models []Model[E]) (tags []string) {
	for _, m := range models {
		tags = append(tags, m.Languages...)
	}
	return tags
}

// listed returns the models as the protocol describes them.
func listed[E any](models []Model[E]) (list []wire.Model) {
	for _, m := range models {
		m.Installed = true
		list = append(list, m.Model)
	}
	return list
}

// describe returns the response to a describe event. Home Assistant uses the first program of each kind, names the
// entity after the program, and offers the entity for the languages of the program's models. The protocol requires name,
// attribution, installed, version and description for each program and model.
func describe(o Options) (wire.Event, error) {
	program := func(description string) wire.Program {
		return wire.Program{Name: o.Name, Attribution: maker(), Installed: true, Version: o.Version,
			Description: strings.TrimSpace(o.ID + " " + description)}
	}
	var info wire.Info
	if len(o.Recognizers) > 0 {
		p := program("understands speech")
		p.Models = listed(o.Recognizers)
		info.ASR = []wire.Program{p}
	}
	if len(o.Synthesizers) > 0 {
		p := program("speaks")
		p.SynthesizeStreaming = true
		p.Voices = listed(o.Synthesizers)
		info.TTS = []wire.Program{p}
	}
	if o.Mind != nil {
		p := program("answers")
		p.Models = []wire.Model{{Name: "mind", Attribution: maker(), Installed: true, Version: o.Version, Description: o.Name, Languages: o.Languages}}
		p.HandledStreaming = true
		info.Handle = []wire.Program{p}
	}
	if o.Judge != nil {
		info.Turn = []wire.Program{program("tells when a person has finished")}
	}
	e, err := wire.NewEvent(wire.TypeInfo, info, nil)
	if err != nil {
		return wire.Event{}, fmt.Errorf("describe what is served: %w", err)
	}
	return e, nil
}

// choose returns the engine of the model with a name and, as a BCP 47 tag, the language to use, which is the model's first
// language if the model does not offer the requested language. If no model has the name, choose returns the engine of the
// first model for the language, or an error if no model offers the language. An empty language means the first language of
// the model or models. models must not be empty.
func choose[E any](models []Model[E], name, language string) (engine E, tag string, err error) {
	for _, m := range models {
		if m.Name == name {
			if tag, err = offeredLanguage(m.Languages, language); err != nil {
				tag = m.Languages[0]
			}
			return m.Engine, tag, nil
		}
	}
	if tag, err = offeredLanguage(languages(models), language); err != nil {
		return engine, "", err
	}
	for _, matches := range []func(string) bool{
		func(l string) bool { return strings.EqualFold(l, tag) },
		func(l string) bool { return strings.EqualFold(primary(l), primary(tag)) },
	} {
		if i := slices.IndexFunc(models, func(m Model[E]) bool { return slices.ContainsFunc(m.Languages, matches) }); i >= 0 {
			return models[i].Engine, tag, nil
		}
	}
	return models[0].Engine, tag, nil
}

// offeredLanguage returns the language of a request as a BCP 47 tag. An empty language means the first offered
// language. Regional variants of the offered languages, such as en-GB, are accepted too. The error is a failure.
func offeredLanguage(offered []string, requested string) (string, error) {
	if requested == "" {
		return offered[0], nil
	}
	tag := strings.ReplaceAll(requested, "_", "-")
	isOffered := slices.ContainsFunc(offered, func(other string) bool { return strings.EqualFold(primary(other), primary(tag)) })
	if !languageTag().MatchString(requested) || !isOffered {
		return "", &failure{code: codeLanguage, text: "This language is not offered; the offered languages are " + strings.Join(offered, ", ") + "."}
	}
	return tag, nil
}

// primary returns the primary language of a tag, such as "en" for "en-GB".
func primary(tag string) string {
	tag, _, _ = strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	return tag
}
