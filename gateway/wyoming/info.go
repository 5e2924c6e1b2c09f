package wyoming

import (
	"fmt"
	"strings"

	wire "perch/voice/wyoming"
)

// describe makes the answer to describe. Home Assistant takes the first
// program of a kind, names the entity after it, and offers it for the
// languages of its models; all five fields of an artifact must be there.
func describe(o Options) (wire.Event, error) {
	maker := wire.Attribution{Name: "Perch"}
	program := func(does string) wire.Program {
		return wire.Program{Name: o.Name, Attribution: maker, Installed: true, Version: o.Version, Description: strings.TrimSpace(o.ID + " " + does)}
	}
	model := func(name, is string) wire.Model {
		return wire.Model{Name: name, Attribution: maker, Installed: true, Version: o.Version, Description: is, Languages: []string{o.Language}}
	}
	var info wire.Info
	if o.Recognizer != nil {
		p := program("understands speech")
		p.Models = []wire.Model{model(o.Recognizer.Name(), o.Recognizer.Name())}
		info.ASR = []wire.Program{p}
	}
	if o.Synthesizer != nil {
		p := program("speaks")
		p.SynthesizeStreaming = true
		p.Voices = []wire.Model{model(o.Synthesizer.Name(), o.Name)}
		info.TTS = []wire.Program{p}
	}
	if o.Mind != nil {
		p := program("answers")
		p.Models = []wire.Model{model("mind", o.Name)}
		p.HandledStreaming = true
		info.Handle = []wire.Program{p}
	}
	e, err := wire.NewEvent(wire.TypeInfo, info, nil)
	if err != nil {
		return wire.Event{}, fmt.Errorf("describe what is served: %w", err)
	}
	return e, nil
}

// offered is the language a request asks for, as an engine takes it: en_GB is
// en-GB, and the English that is offered is taken for all of them. A request that
// names none is for the owner's.
func (s *Server) offered(asked string) (string, error) {
	if asked == "" {
		return s.o.Language, nil
	}
	tag := strings.ReplaceAll(asked, "_", "-")
	if !languageTag.MatchString(asked) || !strings.EqualFold(primary(s.o.Language), primary(tag)) {
		return "", &failure{code: codeLanguage, text: fmt.Sprintf("That language is not known here; %s is.", s.o.Language)}
	}
	return tag, nil
}

func primary(tag string) string {
	tag, _, _ = strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	return tag
}
