package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perch/cmd/perch/doctor"
	"perch/command"
	"perch/device"
	"perch/plain"
)

// robotList is the result of perch robot list.
type robotList struct {
	Robots  []deviceLine     `json:"robots"`
	Refused []doctor.Refused `json:"refused"`
}

func robotListCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:        "list",
		SuggestFor: []string{"devices", "robots"},
		Short:      "List the robots and the refused check-ins",
		Example:    "perch robot list --json",
		RunE: func(c *cobra.Command, _ []string) error {
			list := robotList{Robots: []deviceLine{}, Refused: []doctor.Refused{}}
			if err := r.call(c, http.MethodGet, "/api/v1/devices", nil, &list.Robots); err != nil {
				return err
			}
			if err := r.call(c, http.MethodGet, "/api/v1/refused", nil, &list.Refused); err != nil {
				return err
			}
			return r.print(c, list, func(out io.Writer) { list.write(out, command.ScreenOf(c.OutOrStdout(), os.Getenv)) })
		},
	})
}

// write prints the list. On a terminal it begins with column titles.
func (l robotList) write(out io.Writer, screen command.Screen) {
	switch {
	case len(l.Robots) == 0:
		fmt.Fprintln(out, "no robot has been here yet")
	case screen.Terminal:
		fmt.Fprintf(out, "%-12s  %-24s %-8s %-15s %-13s %-11s %-24s  %s\n", "ROBOT", "BOARD", "FIRMWARE", "ADDRESS", "STATE", "ADOPTED", "LAST SEEN", "NAME")
	}
	for _, d := range l.Robots {
		row := fmt.Sprintf("%s  %-24s %-8s %-15s %-13s %-11s seen %-19s  %s", plain.Text(d.ID), plain.Text(d.Board), plain.Text(d.Firmware),
			plain.Text(d.Address), plain.Text(d.state()), map[bool]string{true: "adopted", false: "not adopted"}[d.Adopted], d.lastSeen(), plain.Text(d.Name))
		fmt.Fprintln(out, strings.TrimRight(row, " "))
		for _, line := range append([]string{strings.Join(d.Senses, ", "), d.advice()}, d.claims()...) {
			if line != "" {
				fmt.Fprintf(out, "              %s\n", plain.Text(line))
			}
		}
	}
	for _, refused := range l.Refused {
		fmt.Fprintln(out, refused)
	}
}

// deviceLine is a robot as the admin API returns it and commands print it. admin.Device explains the fields.
type deviceLine struct {
	device.Settings
	Given     device.Transport  `json:"transport_given"`
	Adopted   bool              `json:"adopted"`
	ID        string            `json:"id"`
	Board     string            `json:"board"`
	Firmware  string            `json:"firmware"`
	Address   string            `json:"address"`
	LastSeen  time.Time         `json:"last_seen"`
	Waiting   string            `json:"waiting"`
	Code      string            `json:"code"`
	Claimed   bool              `json:"claimed"`
	Claimants []device.Claimant `json:"claimants,omitempty"`
	Unlisted  bool              `json:"unlisted,omitempty"`
	Connected bool              `json:"connected"`
	State     string            `json:"state"`
	Senses    []string          `json:"senses"`
}

// lastSeen returns when the robot was last seen, in local time, or "never".
func (d deviceLine) lastSeen() string {
	if d.LastSeen.IsZero() {
		return "never" // it was added by hand
	}
	return d.LastSeen.Local().Format(time.DateTime)
}

// isAdopted returns "yes" or "no".
func (d deviceLine) isAdopted() string {
	if d.Adopted {
		return "yes"
	}
	return "no"
}

// state returns the robot's state, or "not connected".
func (d deviceLine) state() string {
	if !d.Connected {
		return "not connected"
	}
	return d.State
}

// advice tells the owner what to do if the robot waits to be adopted, is not adopted, or must reboot,
// and with which command. It returns "" if there is nothing to do.
func (d deviceLine) advice() string {
	switch {
	case d.Claimed:
		return fmt.Sprintf("%s: perch robot adopt CODE, or perch robot adopt --replace %s", d.Waiting, d.ID)
	case len(d.Claimants) > 0:
		return fmt.Sprintf("waits: %s: perch robot adopt CODE, or perch robot adopt %s --client CLIENT-ID", d.Waiting, d.ID)
	case d.Waiting != "" && d.Code != "":
		return fmt.Sprintf("waits: %s: perch robot adopt %s, or the code it shows, %s", d.Waiting, d.ID, d.Code)
	case d.Waiting != "":
		return fmt.Sprintf("waits: %s: perch robot adopt %s", d.Waiting, d.ID)
	case !d.Adopted:
		return "not adopted, so it may only talk: perch robot adopt " + d.ID
	case d.Transport != "" && d.Given != "" && d.Transport != d.Given:
		return fmt.Sprintf("it uses %s from its next boot on: perch robot reboot %s, or switch it off and on", d.Transport, d.ID)
	}
	return ""
}

// claims returns a line for each client that claims the robot's MAC address.
func (d deviceLine) claims() (lines []string) {
	for _, c := range d.Claimants {
		line := fmt.Sprintf("claimed by %s from %s, seen %s", claimantID(c), cmp.Or(c.Address, "an unknown address"),
			c.At.Local().Format(time.DateTime))
		switch {
		case c.Bound && d.Adopted:
			line += ", adopted"
		case c.Bound:
			line += ", came first"
		}
		lines = append(lines, line)
	}
	if d.Unlisted {
		lines = append(lines, "claimed by others that are no longer listed")
	}
	return lines
}

// claimantID returns the words for a claiming client in a printed line, such as "Client-Id 1234".
func claimantID(c device.Claimant) string {
	if c.Client == "" {
		return "a client without a Client-Id"
	}
	return "Client-Id " + c.Client
}
