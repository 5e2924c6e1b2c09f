package manifest

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"perch/agent"
)

// front parses the YAML before the instructions, whose keys are those of brain, or
// brain itself, and returns the text after it.
func (m *Manifest) front(text string) (body string, err error) {
	head, body, closed := agent.FrontMatter(text)
	if !closed {
		return "", fault(errors.New("the front matter of the instructions is not closed by a line of ---"))
	}
	type brain struct {
		Provider    *string  `yaml:"provider"`
		Model       *string  `yaml:"model"`
		Temperature *float64 `yaml:"temperature"`
		MaxTokens   *int     `yaml:"maxTokens"`
	}
	var said struct {
		brain    `yaml:",inline"`
		Brain    brain  `yaml:"brain"`
		Language string `yaml:"language"`
	}
	if err := yaml.Unmarshal([]byte(head), &said); err != nil {
		return "", fault(fmt.Errorf("the front matter of the instructions: %.200s", strings.Join(strings.Fields(err.Error()), " ")))
	}
	for _, b := range []brain{said.brain, said.Brain} {
		override(&m.Brain.Provider, b.Provider)
		override(&m.Brain.Model, b.Model)
		override(&m.Brain.MaxTokens, b.MaxTokens)
		if b.Temperature != nil {
			m.Brain.Temperature = b.Temperature
		}
	}
	m.Language = said.Language
	return body, nil
}

// override sets *to to *from unless from is nil.
func override[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
