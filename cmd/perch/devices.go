package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"perch/cmd/perch/doctor"
	"perch/device"
)

func devices(ctx context.Context, args []string, out io.Writer) error {
	return withAppliance(newFlags("devices"), args, 0, 0, func(c *client, _ []string) error {
		var list []deviceLine
		if err := c.do(ctx, http.MethodGet, "/api/v1/devices", nil, &list); err != nil {
			return err
		}
		if len(list) == 0 {
			fmt.Fprintln(out, "no robot has been here yet")
		}
		for _, d := range list {
			fmt.Fprintf(out, "%s  %-24s %-8s %-15s %-13s seen %s\n", device.Plain(d.ID), device.Plain(d.Board), device.Plain(d.Firmware),
				device.Plain(d.Address), device.Plain(d.state()), d.seen())
			for _, more := range []string{d.called(), strings.Join(d.Senses, ", "), d.advice()} {
				if more != "" {
					fmt.Fprintf(out, "              %s\n", device.Plain(more))
				}
			}
		}
		return refusals(ctx, c, out)
	})
}

// deviceLine is what devices shows of a robot.
type deviceLine struct {
	device.Settings
	Adopted   bool      `json:"adopted"`
	ID        string    `json:"id"`
	Board     string    `json:"board"`
	Firmware  string    `json:"firmware"`
	Address   string    `json:"address"`
	LastSeen  time.Time `json:"last_seen"`
	Waiting   string    `json:"waiting"`
	Code      string    `json:"code"`
	Claimed   bool      `json:"claimed"`
	Connected bool      `json:"connected"`
	State     string    `json:"state"`
	Senses    []string  `json:"senses"`
}

func (d deviceLine) seen() string { return d.LastSeen.Local().Format(time.DateTime) }

func (d deviceLine) state() string {
	if !d.Connected {
		return "not connected"
	}
	return d.State
}

// called is what a robot's owner calls it.
func (d deviceLine) called() string {
	if d.Name == "" {
		return ""
	}
	return "called " + d.Name
}

// advice is why a robot is not its owner's, and how it becomes that.
func (d deviceLine) advice() string {
	switch {
	case d.Claimed:
		return fmt.Sprintf("%s: perch adopt CODE, or perch adopt --replace %s", d.Waiting, d.ID)
	case d.Waiting != "" && d.Code != "":
		return fmt.Sprintf("waits: %s: perch adopt %s, or the code it shows, %s", d.Waiting, d.ID, d.Code)
	case d.Waiting != "":
		return fmt.Sprintf("waits: %s: perch adopt %s", d.Waiting, d.ID)
	case !d.Adopted:
		return "nobody has adopted it, so that it may talk and nothing else: perch adopt " + d.ID
	}
	return ""
}

// refusals shows whom the appliance has turned away: such a robot is in no list.
func refusals(ctx context.Context, c *client, out io.Writer) error {
	var list []doctor.Refused
	if err := c.do(ctx, http.MethodGet, "/api/v1/refused", nil, &list); err != nil {
		return err
	}
	for _, t := range list {
		fmt.Fprintln(out, t)
	}
	return nil
}
