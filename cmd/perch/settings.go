package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perch/cmd/perch/config"
	"perch/cmd/perch/engines"
)

// settings holds the flags that say what to run.
type settings struct {
	config, data, level string
	listen, local       []string
	judge               bool // whether files are checked as the service's user, if that is another
}

func (s *settings) register(c *cobra.Command) *cobra.Command {
	f := c.Flags()
	f.StringVar(&s.config, "config", "", "`FILE` of the configuration")
	f.StringVar(&s.data, "data", "", "`DIR` of its data")
	return c
}

// flags returns these flags as another command about the same appliance has them.
func (s *settings) flags() (flags string) {
	if s.config != "" {
		flags += " --config " + config.ShellWord(s.config)
	}
	if s.data != "" {
		flags += " --data " + config.ShellWord(s.data)
	}
	return flags
}

// load returns the configuration that these flags lead to.
func (s *settings) load() (config.Config, error) {
	from := s.source()
	c, err := from.Load()
	if err != nil {
		return c, err
	}
	s.apply(&c)
	return c, from.Recheck(&c)
}

// apply overrides the configuration with these flags.
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

// overlay returns what shows and changes the configuration that these flags lead to.
func (s *settings) overlay() *config.Overlay {
	fixed := map[string]string{}
	for flag, is := range map[string]bool{"listen": len(s.listen) > 0, "local": len(s.local) > 0, "log-level": s.level != ""} {
		if is {
			fixed[strings.ReplaceAll(flag, "-", ".")] = "--" + flag
		}
	}
	return &config.Overlay{Source: s.source(), Data: config.Data(s.data), Fixed: fixed, Flags: s.apply,
		Judge: engines.CheckRecognizers, Now: time.Now}
}

// source returns where the configuration is read from.
func (s *settings) source() config.Source {
	data := config.Data(s.data)
	from := config.Source{File: config.File(s.config), Overlay: filepath.Join(data, config.OverlayFile), Options: config.AppOptions(data),
		Environ: os.Environ()}
	if s.judge {
		from.Service = config.Reader(from.File)
	}
	return from
}
