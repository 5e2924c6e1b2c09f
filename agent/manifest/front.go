package manifest

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"perch/agent"
)

// parseFrontMatter parses the YAML before the instructions and returns the text after it.
// The YAML may have the fields of brain at its top level, under the key brain, or both; the
// fields under the key brain take precedence.
func (m *Manifest) parseFrontMatter(text string) (body string, err error) {
	head, body, closed := agent.FrontMatter(text)
	if !closed {
		return "", invalid(errors.New("the front matter of the instructions is not closed by a line of ---"))
	}
	type brain struct {
		Provider    *string  `yaml:"provider"`
		Model       *string  `yaml:"model"`
		Temperature *float64 `yaml:"temperature"`
		MaxTokens   *int     `yaml:"maxTokens"`
	}
	var fields struct {
		brain    `yaml:",inline"`
		Brain    brain  `yaml:"brain"`
		Language string `yaml:"language"`
	}
	if err := yaml.Unmarshal([]byte(head), &fields); err != nil {
		return "", invalid(fmt.Errorf("the front matter of the instructions: %.200s", strings.Join(strings.Fields(err.Error()), " ")))
	}
	for _, b := range []brain{fields.brain, fields.Brain} {
		override(&m.Brain.Provider, b.Provider)
		override(&m.Brain.Model, b.Model)
		override(&m.Brain.MaxTokens, b.MaxTokens)
		if b.Temperature != nil {
			m.Brain.Temperature = b.Temperature
		}
	}
	m.Language = fields.Language
	return body, nil
}

// override copies *from to *to, unless from is nil.
func override[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
