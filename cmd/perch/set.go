package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perch/cmd/perch/config"
	"perch/limit"
)

func setCommand() *cobra.Command {
	s := &setting{}
	return s.register(&cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Set a key of the configuration; VALUE is written as in the file, - reads it from standard input",
		Long: "The value is written into settings.yaml in the data directory and overrides the value in the configuration file, which is never changed. " +
			"A wrong value is refused. The command prints which keys take effect only after a restart.",
		Example: `perch set speech.silence 700ms
			perch set brains.0.model qwen3:4b
			perch set allowed_hosts '[robots.example, perch.example]'
			perch set skins.key - <key.txt`,
		RunE: func(c *cobra.Command, args []string) error {
			value := args[1]
			if value == "-" {
				text, err := io.ReadAll(io.LimitReader(c.InOrStdin(), limit.File))
				if err != nil {
					return fmt.Errorf("read the value: %w", err)
				}
				value = strings.TrimSpace(string(text))
			}
			return s.change(c, args[0], value)
		},
	})
}

func unsetCommand() *cobra.Command {
	s := &setting{}
	return s.register(&cobra.Command{
		Use:     "unset KEY",
		Short:   "Remove a key that was set, so that the configuration file decides again",
		Long:    "This also repairs settings.yaml in the data directory if a fault in it keeps the appliance from starting.",
		Example: "perch unset speech.silence",
		RunE:    func(c *cobra.Command, args []string) error { return s.change(c, args[0], nil) },
	})
}

// setting holds the flags of the commands that change a key of the configuration.
type setting struct {
	target
	config string
}

// register adds the flags to a command, and makes shells complete the keys of the configuration.
func (s *setting) register(c *cobra.Command) *cobra.Command {
	s.target.register(c).Flags().StringVar(&s.config, "config", "", "`FILE` of the configuration, if no appliance runs")
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return config.Keys(), cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// change changes a key through the running appliance. If no appliance runs, it changes the overlay
// directly: the file settings.yaml in the data directory, which overrides the configuration file.
// A nil value removes the key from the overlay.
func (s *setting) change(c *cobra.Command, key string, value any) error {
	a, running, err := s.running(c.Context())
	if err != nil {
		return err
	}
	var changes config.Changes
	if running {
		method := http.MethodPut
		if value == nil {
			method = http.MethodDelete
		}
		err = a.call(c.Context(), method, "/api/v1/config/"+url.PathEscape(key), value, &changes)
	} else {
		changes, err = (&settings{config: s.config, data: s.data}).change(key, value)
	}
	if err != nil {
		return err
	}
	return s.print(c, changes, func(out io.Writer) {
		switch {
		case !running:
			fmt.Fprintf(out, "%s takes effect at the next start\n", key)
		case changes.Restart:
			fmt.Fprintln(out, effectText(key, changes.Keys))
		default:
			fmt.Fprintf(out, "%s is in effect\n", key)
		}
	})
}

// effectText returns sentences that say whether the changed key is in effect, and which earlier changes need a
// restart. waiting holds all keys that need a restart, and may contain key.
func effectText(key string, waiting []string) string {
	others := slices.DeleteFunc(slices.Clone(waiting), func(k string) bool {
		return k == key || strings.HasPrefix(key, k+".") || strings.HasPrefix(k, key+".")
	})
	text := key + " is in effect"
	if len(others) < len(waiting) {
		text = key + " takes effect after a restart: sudo systemctl restart perch"
	}
	if len(others) > 0 {
		text += "\nearlier changes that take effect after a restart (sudo systemctl restart perch): " + strings.Join(others, ", ")
	}
	return text
}

// change changes a key in the overlay of an appliance that does not run.
func (s *settings) change(key string, value any) (config.Changes, error) {
	s.asService = true
	changes, faults, err := s.overlay().Change(map[string]any{key: value})
	if err == nil && len(faults) > 0 {
		err = errors.New("nothing was changed: " + config.Faults(faults).Error())
	}
	return changes, err
}
