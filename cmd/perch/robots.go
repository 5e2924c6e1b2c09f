package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"perch/device"
)

// robotKeys are those of robot set, in the order in which they are shown.
func robotKeys() []string { return []string{"name", "persona", "voice", "brain", "language"} }

// robotAt is where the admin API has a robot.
func robotAt(robot string) string { return "/api/v1/devices/" + url.PathEscape(robot) }

// showRobot shows all that is known of a robot.
func showRobot(ctx context.Context, args []string, out io.Writer) error {
	return withAppliance(newFlags("robot show"), args, 1, 1, func(c *client, rest []string) error {
		var d deviceLine
		if err := c.do(ctx, http.MethodGet, robotAt(rest[0]), nil, &d); err != nil {
			return err
		}
		d.write(out)
		return nil
	})
}

// renameRobot gives a robot a name.
func renameRobot(ctx context.Context, args []string, out io.Writer) error {
	return withAppliance(newFlags("robot rename"), args, 2, 20, func(c *client, rest []string) error {
		var d deviceLine
		name := strings.Join(rest[1:], " ")
		if err := c.do(ctx, http.MethodPut, robotAt(rest[0]), map[string]string{"name": name}, &d); err != nil {
			return err
		}
		if d.Name == "" {
			fmt.Fprintf(out, "%s has no name any more\n", device.Plain(d.ID))
			return nil
		}
		fmt.Fprintf(out, "%s is called %s\n", device.Plain(d.ID), device.Plain(d.Name))
		return nil
	})
}

// setRobot sets what one robot has of its own.
func setRobot(ctx context.Context, args []string, out io.Writer) error {
	return withAppliance(newFlags("robot set"), args, 2, 20, func(c *client, rest []string) error {
		change := map[string]string{}
		for _, word := range rest[1:] {
			key, value, is := strings.Cut(word, "=")
			if !is || !slices.Contains(robotKeys(), key) {
				return usageError(fmt.Sprintf("%q is no setting; it is KEY=VALUE, and KEY one of %s", word, strings.Join(robotKeys(), ", ")))
			}
			change[key] = value
		}
		var d deviceLine
		if err := c.do(ctx, http.MethodPut, robotAt(rest[0]), change, &d); err != nil {
			return err
		}
		d.write(out)
		return nil
	})
}

// write shows a robot, a line for each thing that is known of it.
func (d deviceLine) write(out io.Writer) {
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(out, "%-9s %s\n", key, device.Plain(value))
		}
	}
	line("id", d.ID)
	for i, value := range []string{d.Name, d.Persona, d.Voice, d.Brain, d.Language} {
		line(robotKeys()[i], value)
	}
	line("board", d.Board)
	line("firmware", d.Firmware)
	line("address", d.Address)
	line("seen", d.seen())
	line("state", d.state())
	line("senses", strings.Join(d.Senses, ", "))
	line("note", strings.TrimSpace(d.advice()))
}
