package wyoming

import (
	"fmt"
	"slices"
	"strings"

	wire "perch/voice/wyoming"
)

// describe returns the answer to a describe event. Home Assistant uses the first program of a
// kind, names the entity after it, and offers it for the languages of its models. All five
// fields of an artifact are required.
func describe(o Options) (wire.Event, error) {
	maker := wire.Attribution{Name: "Perch"}
	program := func(does string) wire.Program {
		return wire.Program{Name: o.Name, Attribution: maker, Installed: true, Version: o.Version, Description: strings.TrimSpace(o.ID + " " + does)}
	}
	model := func(name, is string, languages []string) wire.Model {
		return wire.Model{Name: name, Attribution: maker, Installed: true, Version: o.Version, Description: is, Languages: languages}
	}
	var info wire.Info
	if o.Recognizer != nil {
		p := program("understands speech")
		p.Models = []wire.Model{model(o.Recognizer.Name(), o.Recognizer.Name(), o.Heard)}
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

// offeredLanguage returns the language of a request as a BCP 47 tag. A variant of an offered
// language is accepted, and no language means the first.
func offeredLanguage(list []string, asked string) (string, error) {
	if asked == "" {
		return list[0], nil
	}
	tag := strings.ReplaceAll(asked, "_", "-")
	known := slices.ContainsFunc(list, func(one string) bool { return strings.EqualFold(primary(one), primary(tag)) })
	if !languageTag().MatchString(asked) || !known {
		return "", &failure{code: codeLanguage, text: "That language is not known here; known are: " + strings.Join(list, ", ") + "."}
	}
	return tag, nil
}

func primary(tag string) string {
	tag, _, _ = strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	return tag
}
