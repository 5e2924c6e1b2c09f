package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perch/agent/notice"
	"perch/command"
	"perch/plain"
)

// notificationBody is the body of a request to send a notification.
type notificationBody struct {
	Text      string `json:"text"`
	Urgency   string `json:"urgency"`
	Robot     string `json:"robot,omitempty"`
	Speak     bool   `json:"speak"`
	ExpiresAt string `json:"expires_at,omitempty"`
}

func notificationSendCommand() *cobra.Command {
	r, n, silent, expires := &target{}, notificationBody{}, false, ""
	c := r.register(&cobra.Command{
		Use:   "send TEXT...",
		Short: "Send a notification, at once or when a robot next connects",
		Long:  "The command prints the ID of the notification.",
		Example: `perch notification send "the laundry is done"
			perch notification send --robot kitchen --urgency high --expires 10m "the oven is hot"`,
		RunE: func(c *cobra.Command, args []string) error {
			n.Text, n.Speak = strings.Join(args, " "), !silent
			if !slices.Contains([]string{"low", "normal", "high"}, n.Urgency) {
				return command.Usagef("--urgency %q is not one of low, normal or high", n.Urgency)
			}
			if expires != "" {
				d, err := time.ParseDuration(expires)
				if err != nil || d <= 0 {
					return command.Usagef("--expires %q is not a time such as 10m or 2h", expires)
				}
				n.ExpiresAt = time.Now().Add(d).Format(time.RFC3339Nano)
			}
			var result struct {
				ID string `json:"id"`
			}
			return r.callAndPrint(c, http.MethodPost, "/api/v1/notifications", n, &result, func(out io.Writer) { fmt.Fprintln(out, result.ID) })
		},
	})
	s := c.Flags()
	s.StringVar(&n.Urgency, "urgency", "normal", "`low|normal|high`: high interrupts, low waits for a pause")
	s.StringVar(&n.Robot, "robot", "", "`ROBOT` that speaks the notification; without it, all robots do")
	s.BoolVar(&silent, "silent", false, "show the notification without a sound")
	s.StringVar(&expires, "expires", "", "`TIME` after which the notification expires, such as 10m; without it, a day")
	return c
}

func notificationListCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "list",
		Short: "List the notifications that are neither acknowledged nor expired, oldest first",
		RunE: func(c *cobra.Command, _ []string) error {
			var list []notice.Notification
			return r.callAndPrint(c, http.MethodGet, "/api/v1/notifications", nil, &list, func(out io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(out, "there are no notifications")
				}
				for _, n := range list {
					fmt.Fprintf(out, "%s  %s  %-8s %-6s %s\n", plain.Text(n.ID), n.Received.Local().Format(time.DateTime), plain.Text(n.State),
						plain.Text(n.Urgency), plain.Text(n.Text))
				}
			})
		},
	})
}
