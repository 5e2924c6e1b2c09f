package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/gateway/owner/admin"
	"perch/plain"
)

// robotKeys returns the keys that robot set sets.
func robotKeys() []string {
	return []string{"name", "persona", "character", "voice", "brain", "language", "transport"}
}

// robotAt is where the admin API has a robot.
func robotAt(robot string) string { return "/api/v1/devices/" + url.PathEscape(robot) }

func showCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:     "show ROBOT",
		Short:   "Show what is known of a robot",
		Example: "perch robot show kitchen",
		RunE: func(c *cobra.Command, args []string) error {
			var d deviceLine
			return r.ask(c, http.MethodGet, robotAt(args[0]), nil, &d, func(out io.Writer) { d.write(out) })
		},
	})
}

func renameCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "rename ROBOT NAME...",
		Short: "Give a robot the name by which every command knows it; an empty one takes it away",
		Example: `perch robot rename a0b1c2d3e4f5 kitchen
			perch robot rename kitchen ""`,
		RunE: func(c *cobra.Command, args []string) error {
			var d deviceLine
			body := map[string]string{"name": strings.Join(args[1:], " ")}
			return r.ask(c, http.MethodPut, robotAt(args[0]), body, &d, func(out io.Writer) {
				if d.Name == "" {
					fmt.Fprintf(out, "%s has no name any more\n", plain.Text(d.ID))
					return
				}
				fmt.Fprintf(out, "%s is called %s\n", plain.Text(d.ID), plain.Text(d.Name))
			})
		},
	})
}

func setCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "set ROBOT KEY=VALUE...",
		Short: "Set a robot's own name, persona, voice, brain, language or transport; an empty value takes it away",
		Example: `perch robot set kitchen voice=en-gb language=en
			perch robot set kitchen transport=mqtt`,
		RunE: func(c *cobra.Command, args []string) error {
			change := map[string]string{}
			for _, word := range args[1:] {
				key, value, is := strings.Cut(word, "=")
				if !is || !slices.Contains(robotKeys(), key) {
					return command.Usagef("%q is no setting; it is KEY=VALUE, and KEY one of %s", word, strings.Join(robotKeys(), ", "))
				}
				change[key] = value
			}
			var d deviceLine
			err := r.ask(c, http.MethodPut, robotAt(args[0]), change, &d, func(out io.Writer) { d.write(out) })
			if err != nil || change["language"] == "" || r.json {
				return err
			}
			return r.warnOfLanguage(c)
		},
	})
}

// warnOfLanguage prints what the appliance lacks for the languages that robots are set to, as
// check-config does for those of the configuration.
func (r *target) warnOfLanguage(c *cobra.Command) error {
	var status admin.Status
	return r.ask(c, http.MethodGet, "/api/v1/status", nil, &status, func(out io.Writer) {
		for _, p := range status.Parts {
			if p.Name == "language" {
				fmt.Fprintf(out, "warning: language: %s\n", plain.Text(p.Note))
			}
		}
	})
}

func rebootCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:     "reboot ROBOT",
		Short:   "Restart a robot that is connected",
		Example: "perch robot reboot kitchen",
		RunE: func(c *cobra.Command, args []string) error {
			return r.ask(c, http.MethodPost, robotAt(args[0])+"/reboot", nil, nil, func(out io.Writer) {
				fmt.Fprintln(out, plain.Text(args[0])+" restarts")
			})
		},
	})
}

// write prints a robot, a line for each field that has a value.
func (d deviceLine) write(out io.Writer) {
	lines := [][2]string{
		{"id", d.ID}, {"name", d.Name}, {"persona", d.Persona}, {"voice", d.Voice}, {"brain", d.Brain}, {"language", d.Language},
		{"transport", string(d.Transport)}, {"board", d.Board}, {"firmware", d.Firmware}, {"address", d.Address}, {"seen", d.lastSeen()}, {"state", d.state()},
		{"senses", strings.Join(d.Senses, ", ")}, {"note", strings.TrimSpace(d.advice())},
	}
	for _, claim := range d.claims() {
		lines = append(lines, [2]string{"", claim})
	}
	writeLines(out, lines)
}

// writeLines prints names and values. It leaves out what has no value.
func writeLines(out io.Writer, lines [][2]string) {
	for _, line := range lines {
		if line[1] != "" {
			fmt.Fprintf(out, "%-9s %s\n", line[0], plain.Text(line[1]))
		}
	}
}
