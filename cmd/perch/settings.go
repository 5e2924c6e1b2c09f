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

// settings are the flags that say what to run.
type settings struct {
	config, data, level string
	listen, local       []string
	judge               bool // the service's user is to read what it names, where that is another
}

func (s *settings) register(c *cobra.Command) *cobra.Command {
	f := c.Flags()
	f.StringVar(&s.config, "config", "", "`FILE` of the configuration")
	f.StringVar(&s.data, "data", "", "`DIR` of its data")
	return c
}

// again are these flags for another command about the same appliance.
func (s *settings) again() (flags string) {
	if s.config != "" {
		flags += " --config " + config.ShellWord(s.config)
	}
	if s.data != "" {
		flags += " --data " + config.ShellWord(s.data)
	}
	return flags
}

// load is the configuration these flags lead to.
func (s *settings) load() (config.Config, error) {
	from := s.source()
	c, err := from.Load()
	if err != nil {
		return c, err
	}
	s.apply(&c)
	return c, from.Recheck(&c)
}

// apply has flags take the place of what the configuration says.
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

// overlay shows and changes the configuration that these flags lead to.
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

// source is where the configuration is.
func (s *settings) source() config.Source {
	data := config.Data(s.data)
	from := config.Source{File: config.File(s.config), Overlay: filepath.Join(data, config.OverlayFile), Options: config.AppOptions(data),
		Environ: os.Environ()}
	if s.judge {
		from.Service = config.Reader(from.File)
	}
	return from
}
