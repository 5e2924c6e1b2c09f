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

// robotKeys returns the keys that perch robot set accepts.
func robotKeys() []string {
	return []string{"name", "persona", "character", "voice", "brain", "language", "transport"}
}

// robotPath returns the path of a robot in the admin API.
func robotPath(robot string) string { return "/api/v1/devices/" + url.PathEscape(robot) }

func robotShowCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:     "show ROBOT",
		Short:   "Show a robot and its settings",
		Example: "perch robot show kitchen",
		RunE: func(c *cobra.Command, args []string) error {
			var d deviceLine
			return r.callAndPrint(c, http.MethodGet, robotPath(args[0]), nil, &d, func(out io.Writer) { d.write(out) })
		},
	})
}

func robotRenameCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "rename ROBOT NAME...",
		Short: "Give a robot a name, which all commands accept; an empty name removes it",
		Example: `perch robot rename a0b1c2d3e4f5 kitchen
			perch robot rename kitchen ""`,
		RunE: func(c *cobra.Command, args []string) error {
			var d deviceLine
			body := map[string]string{"name": strings.Join(args[1:], " ")}
			return r.callAndPrint(c, http.MethodPut, robotPath(args[0]), body, &d, func(out io.Writer) {
				if d.Name == "" {
					fmt.Fprintf(out, "%s has no name any more\n", plain.Text(d.ID))
					return
				}
				fmt.Fprintf(out, "%s is called %s\n", plain.Text(d.ID), plain.Text(d.Name))
			})
		},
	})
}

func robotSetCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "set ROBOT KEY=VALUE...",
		Short: "Set a robot's own name, persona, character, voice, brain, language or transport; an empty value removes it",
		Example: `perch robot set kitchen voice=en-gb language=en
			perch robot set kitchen transport=mqtt`,
		RunE: func(c *cobra.Command, args []string) error {
			changes := map[string]string{}
			for _, arg := range args[1:] {
				key, value, ok := strings.Cut(arg, "=")
				if !ok || !slices.Contains(robotKeys(), key) {
					return command.Usagef("%q is not a setting; write KEY=VALUE, where KEY is one of %s", arg, strings.Join(robotKeys(), ", "))
				}
				changes[key] = value
			}
			var d deviceLine
			err := r.callAndPrint(c, http.MethodPut, robotPath(args[0]), changes, &d, func(out io.Writer) { d.write(out) })
			if err != nil || changes["language"] == "" || r.json {
				return err
			}
			return r.warnOfLanguage(c)
		},
	})
}

// warnOfLanguage prints the appliance's warnings about the languages of robots, such as a missing voice.
func (r *target) warnOfLanguage(c *cobra.Command) error {
	var status admin.Status
	return r.callAndPrint(c, http.MethodGet, "/api/v1/status", nil, &status, func(out io.Writer) {
		for _, p := range status.Parts {
			if p.Name == "language" {
				fmt.Fprintf(out, "warning: language: %s\n", plain.Text(p.Note))
			}
		}
	})
}

func robotRebootCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:     "reboot ROBOT",
		Short:   "Reboot a connected robot",
		Example: "perch robot reboot kitchen",
		RunE: func(c *cobra.Command, args []string) error {
			return r.callAndPrint(c, http.MethodPost, robotPath(args[0])+"/reboot", nil, nil, func(out io.Writer) {
				fmt.Fprintln(out, plain.Text(args[0])+" restarts")
			})
		},
	})
}

// write prints the robot, with a line for each field that is not empty.
func (d deviceLine) write(out io.Writer) {
	lines := [][2]string{
		{"id", d.ID}, {"name", d.Name}, {"persona", d.Persona}, {"voice", d.Voice}, {"brain", d.Brain}, {"language", d.Language},
		{"transport", string(d.Transport)}, {"board", d.Board}, {"firmware", d.Firmware}, {"address", d.Address}, {"seen", d.lastSeen()}, {"state", d.state()},
		{"adopted", d.isAdopted()},
		{"senses", strings.Join(d.Senses, ", ")}, {"note", strings.TrimSpace(d.advice())},
	}
	for _, claim := range d.claims() {
		lines = append(lines, [2]string{"", claim})
	}
	writeLines(out, lines)
}

// writeLines prints pairs of a name and a value. It skips empty values.
func writeLines(out io.Writer, lines [][2]string) {
	for _, line := range lines {
		if line[1] != "" {
			fmt.Fprintf(out, "%-9s %s\n", line[0], plain.Text(line[1]))
		}
	}
}
