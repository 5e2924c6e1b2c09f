package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
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
	File     string                `json:"file"`               // empty: the defaults
	Settings string                `json:"settings,omitempty"` // the overlay, if it exists
	User     string                `json:"user,omitempty"`     // the service's, who can read the files that it names
	Faults   []string              `json:"faults"`
	Warnings []config.ShownWarning `json:"warnings"`
}

func checkConfigCommand() *cobra.Command {
	o, data := &output{}, ""
	c := o.register(&cobra.Command{
		Use:     "check-config [FILE]",
		Short:   "Print every fault of a configuration, and of the settings that were changed",
		Long:    "Each fault is a line with file, line and key. Exit codes: 0 no faults, 2 faults.",
		Example: "perch check-config /etc/perch/perch.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			return checkConfig(c, &settings{config: strings.Join(args, ""), data: data, judge: true}, o)
		},
	})
	c.Flags().StringVar(&data, "data", "", "`DIR` of the data, where settings.yaml is")
	return c
}

// checkConfig prints every fault of a configuration. Its error is config.Faults.
func checkConfig(c *cobra.Command, s *settings, o *output) error {
	from := s.source()
	shown := checkedConfig{File: from.File, Faults: []string{}, Warnings: []config.ShownWarning{}}
	if store.Exists(from.Overlay) {
		shown.Settings = from.Overlay
	}
	loaded, err := from.Load()
	if err == nil {
		err = engines.CheckRecognizers(&loaded)
	}
	if err != nil {
		var wrong config.Faults
		if !errors.As(err, &wrong) {
			wrong = config.Faults{{Message: err.Error()}}
		}
		for _, fault := range wrong {
			shown.Faults = append(shown.Faults, fault.String())
		}
		if o.json {
			return errors.Join(command.WriteJSON(c.OutOrStdout(), shown), wrong)
		}
		return wrong
	}
	for _, w := range loaded.Warnings(from.File, "", time.Now()) {
		shown.Warnings = append(shown.Warnings, config.ShownWarning(w))
	}
	if from.Service != nil {
		shown.User = from.Service.Name
	}
	return o.print(c, shown, shown.write)
}

func (s checkedConfig) write(out io.Writer) {
	for _, w := range s.Warnings {
		fmt.Fprintf(out, "warning: %s: %s\n", w.Part, w.What)
	}
	path := cmp.Or(s.File, "no file: the defaults")
	if s.Settings != "" {
		path += " and " + s.Settings
	}
	if s.User != "" {
		fmt.Fprintf(out, "%s: no faults, and the service's user %s can read what it names\n", path, s.User)
		return
	}
	fmt.Fprintf(out, "%s: no faults\n", path)
}
