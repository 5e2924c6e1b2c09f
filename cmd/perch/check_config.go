package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perch/cmd/perch/config"
	"perch/cmd/perch/engines"
	"perch/command"
	"perch/store"
)

// checkedConfig is the result of check-config.
type checkedConfig struct {
	File     string           `json:"file"`               // path of the configuration file; empty if only the defaults apply
	Settings string           `json:"settings,omitempty"` // path of settings.yaml, which holds changed settings; empty if there is no such file
	Skipped  string           `json:"skipped,omitempty"`  // path of the service's settings.yaml, if this user may not look for it
	User     string           `json:"user,omitempty"`     // user of the systemd service, if it can read all configured files
	Faults   []string         `json:"faults"`
	Warnings []config.Warning `json:"warnings"`
}

func checkConfigCommand() *cobra.Command {
	o, data := &output{}, ""
	c := o.register(&cobra.Command{
		Use:     "check-config [FILE]",
		Short:   "Print every fault of a configuration, and of the settings that were changed",
		Long:    "Each fault is a line with file, line and key. Exit codes: 0 no faults, 2 faults.",
		Example: "perch check-config /etc/perch/perch.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			return checkConfig(c, &settings{config: strings.Join(args, ""), data: data, asService: true}, o)
		},
	})
	c.Flags().StringVar(&data, "data", "", "`DIR` of the data, which contains settings.yaml")
	return c
}

// checkConfig checks a configuration and prints its warnings. If the configuration has faults,
// checkConfig returns an error that is or wraps a config.Faults.
func checkConfig(c *cobra.Command, s *settings, o *output) error {
	source := s.source()
	result := checkedConfig{File: source.File, Faults: []string{}, Warnings: []config.Warning{}}
	if store.Exists(source.Overlay) {
		result.Settings = source.Overlay
	}
	result.Skipped = skipped(source, s.data)
	loaded, err := source.Load()
	if err == nil {
		err = engines.CheckRecognizers(&loaded)
	}
	if err != nil {
		var faults config.Faults
		if !errors.As(err, &faults) {
			faults = config.Faults{{Message: err.Error()}}
		}
		for _, fault := range faults {
			result.Faults = append(result.Faults, fault.String())
		}
		if o.json {
			return errors.Join(command.WriteJSON(c.OutOrStdout(), result), faults)
		}
		return faults
	}
	result.Warnings = append(result.Warnings, loaded.Warnings(source.File, "", time.Now())...)
	if source.Service != nil {
		result.User = source.Service.Name
	}
	return o.print(c, result, result.write)
}

// skipped returns the path of the service's overlay if the service's configuration is checked without it, because this
// user may not read the service's data directory. data is the data directory that the owner has named.
func skipped(source config.Source, data string) string {
	if path := filepath.Join(config.SystemData, config.OverlayFile); source.Service != nil && data == "" && source.Overlay != path {
		return path
	}
	return ""
}

// write prints the result for a configuration without faults.
func (r checkedConfig) write(out io.Writer) {
	for _, w := range r.Warnings {
		fmt.Fprintf(out, "warning: %s: %s\n", w.Part, w.What)
	}
	if r.Skipped != "" {
		fmt.Fprintf(out, "not checked: %s, which this user may not read; use sudo perch check-config\n", r.Skipped)
	}
	path := cmp.Or(r.File, "no file: the defaults")
	if r.Settings != "" {
		path += " and " + r.Settings
	}
	if r.User != "" {
		fmt.Fprintf(out, "%s: no faults, and the service's user %s can read what it names\n", path, r.User)
		return
	}
	fmt.Fprintf(out, "%s: no faults\n", path)
}
