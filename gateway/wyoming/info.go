package wyoming

import (
	"fmt"
	"slices"
	"strings"

	wire "perch/voice/wyoming"
)

// describe returns the response to a describe event. Home Assistant uses the first program of each kind, names the
// entity after the program, and offers it for the languages of its models. The protocol requires name, attribution,
// installed, version and description for each program and model.
func describe(o Options) (wire.Event, error) {
	maker := wire.Attribution{Name: "Perch"}
	program := func(description string) wire.Program {
		return wire.Program{Name: o.Name, Attribution: maker, Installed: true, Version: o.Version,
			Description: strings.TrimSpace(o.ID + " " + description)}
	}
	model := func(name, description string, languages []string) wire.Model {
		return wire.Model{Name: name, Attribution: maker, Installed: true, Version: o.Version, Description: description, Languages: languages}
	}
	var info wire.Info
	if o.Recognizer != nil {
		p := program("understands speech")
		p.Models = []wire.Model{model(o.Recognizer.Name(), o.Recognizer.Name(), o.RecognizerLanguages)}
		info.ASR = []wire.Program{p}
	}
	if o.Synthesizer != nil {
		p := program("speaks")
		p.SynthesizeStreaming = true
		p.Voices = []wire.Model{model(o.Synthesizer.Name(), o.Name, o.Languages)}
		info.TTS = []wire.Program{p}
	}
	if o.Mind != nil {
		p := program("answers")
		p.Models = []wire.Model{model("mind", o.Name, o.Languages)}
		p.HandledStreaming = true
		info.Handle = []wire.Program{p}
	}
	e, err := wire.NewEvent(wire.TypeInfo, info, nil)
	if err != nil {
		return wire.Event{}, fmt.Errorf("describe what is served: %w", err)
	}
	return e, nil
}

// offeredLanguage returns the language of a request as a BCP 47 tag. An empty language stands for the first offered
// language. Regional variants of the offered languages, such as en-GB, are accepted too.
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
