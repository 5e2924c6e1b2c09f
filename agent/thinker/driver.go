package thinker

import (
	"log/slog"
	"time"

	"perch/agent"
	"perch/driver"
)

// ModelSetup holds what the driver of a model needs besides its options.
type ModelSetup struct {
	Brain agent.BrainOptions // the persona's defaults for the options
	// Within is the maximum time until the model begins to write, if the options have none. 0 means the
	// driver's default.
	Within time.Duration
	Log    *slog.Logger
}

// ModelDriver declares a kind of model.
type ModelDriver = driver.Driver[ModelSetup, Model]

// ToolServer configures an MCP server for a brain: a command, or a URL. Only and Except select some of
// its tools by name.
type ToolServer struct {
	Name    string            `yaml:"name"`
	Command []string          `yaml:"command"`
	Cwd     string            `yaml:"cwd"`
	Env     map[string]string `yaml:"env"`
	URL     string            `yaml:"url"`
	Key     string            `yaml:"key"`
	KeyFile string            `yaml:"key_file"`
	Only    []string          `yaml:"only"`
	Except  []string          `yaml:"except"`
}

// BrainKeys holds the configuration of a brain. K is the type of its model's options.
type BrainKeys[K any] struct {
	MCP   []ToolServer `yaml:"mcp" doc:"MCP servers, each with a command or a url. The model gets their tools; the keys only and except choose among them."`
	Model K            `yaml:",inline"`
}

// BrainSetup holds what the driver of a brain needs besides the configuration.
type BrainSetup struct {
	Options                                      // without Model and Sources
	Within  time.Duration                        // see ModelSetup.Within
	Tools   func(ToolServer) (ToolSource, error) // returns the tools of a configured server
}

func (s BrainSetup) model() ModelSetup { return ModelSetup{s.Persona.Brain, s.Within, s.Log} }

// sources returns the tool sources of servers. It fails if one of them is configured wrongly.
func (s BrainSetup) sources(servers []ToolServer) (all []ToolSource, err error) {
	for _, server := range servers {
		source, err := s.Tools(server)
		if err != nil {
			return nil, err
		}
		all = append(all, source)
	}
	return all, nil
}

// BrainDriver returns the driver of brains whose model has the driver d. K is the type of the model's options.
func BrainDriver[K any](d ModelDriver) driver.Driver[BrainSetup, agent.Brain] {
	return driver.Driver[BrainSetup, agent.Brain]{Kind: d.Kind, Runs: d.Runs, Summary: d.Summary, Billed: d.Billed, Sample: d.Sample,
		Options: func() any { return new(BrainKeys[K]) },
		Check: func(options any, s BrainSetup) error {
			keys := options.(*BrainKeys[K])
			if err := d.Check(&keys.Model, s.model()); err != nil {
				return err
			}
			_, err := s.sources(keys.MCP)
			return err
		},
		New: func(options any, s BrainSetup) (_ agent.Brain, err error) {
			keys := options.(*BrainKeys[K])
			if s.Options.Model, err = d.New(&keys.Model, s.model()); err != nil {
				return nil, err
			}
			s.Sources, err = s.sources(keys.MCP)
			return New(s.Options), err
		}}
}
