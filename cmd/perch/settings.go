package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perch/cmd/perch/config"
	"perch/cmd/perch/engines"
	"perch/voice/wyoming"
)

// settings holds the flags of perch serve. Other commands have some of them.
type settings struct {
	config, data, level string
	listen, local       []string
	speech              *config.PerchSpeech // made by source
	asService           bool                // whether to check that the user of the systemd service can read the configured files
}

// register adds the flags --config and --data to a command.
func (s *settings) register(c *cobra.Command) *cobra.Command {
	f := c.Flags()
	f.StringVar(&s.config, "config", "", "`FILE` of the configuration")
	f.StringVar(&s.data, "data", "", "`DIR` of the data")
	return c
}

// flags returns the flags --config and --data if they are set, each after a space. With these flags another
// command finds the same appliance.
func (s *settings) flags() (flags string) {
	if s.config != "" {
		flags += " --config " + config.ShellWord(s.config)
	}
	if s.data != "" {
		flags += " --data " + config.ShellWord(s.data)
	}
	return flags
}

// load loads the configuration, overrides it with the flags, and checks the result.
func (s *settings) load() (config.Config, error) {
	source := s.source()
	c, err := source.Load()
	if err != nil {
		return c, err
	}
	s.apply(&c)
	return c, source.Recheck(&c)
}

// apply overrides keys of c with the flags that are set.
func (s *settings) apply(c *config.Config) {
	if len(s.listen) > 0 {
		c.Listen = s.listen
	}
	if len(s.local) > 0 {
		c.Local = s.local
	}
	if s.level != "" {
		c.Log.Level = s.level
	}
}

// overlay returns the overlay (settings.yaml in the data directory) of the configuration that the flags name.
func (s *settings) overlay() *config.Overlay {
	fixed := map[string]string{}
	for flag, isSet := range map[string]bool{"listen": len(s.listen) > 0, "local": len(s.local) > 0, "log-level": s.level != ""} {
		if isSet {
			fixed[strings.ReplaceAll(flag, "-", ".")] = "--" + flag
		}
	}
	return &config.Overlay{Source: s.source(), Data: config.Data(s.data), Fixed: fixed, Flags: s.apply,
		SlowCheck: engines.CheckRecognizers}
}

// source returns the files and the environment that the configuration is read from.
func (s *settings) source() config.Source {
	if s.speech == nil {
		s.speech = &config.PerchSpeech{Address: "tcp://" + wyoming.PerchSpeech, Every: 15 * time.Second}
	}
	data := config.Data(s.data)
	source := config.Source{File: config.File(s.config), Overlay: filepath.Join(data, config.OverlayFile), Options: config.AppOptions(data),
		Environ: os.Environ(), Speech: s.speech}
	if s.asService {
		source.Service = config.ReadingAccount(source.File)
	}
	return source
}
