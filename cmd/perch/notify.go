package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// notificationBody is a notification as the appliance takes it.
type notificationBody struct {
	Text      string `json:"text"`
	Urgency   string `json:"urgency"`
	Robot     string `json:"robot,omitempty"`
	Speak     bool   `json:"speak"`
	ExpiresAt string `json:"expires_at,omitempty"`
}

// notify prints the id of the notification.
func notify(ctx context.Context, args []string, out io.Writer) error {
	n := notificationBody{Urgency: "normal", Speak: true}
	f := newFlags("notify")
	f.Func("urgency", "`low|normal|high`: high interrupts, low waits for a pause", func(s string) error {
		n.Urgency = s
		if s != "low" && s != "normal" && s != "high" {
			return errors.New("it is low, normal or high")
		}
		return nil
	})
	f.StringVar(&n.Robot, "robot", "", "`ROBOT` that tells it; without it, all do")
	f.BoolFunc("silent", "show it, and do not say it", func(s string) error {
		silent, err := strconv.ParseBool(s)
		n.Speak = !silent
		return err
	})
	f.Func("expires", "`TIME` for which it is worth telling, 10m", func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return errors.New("it is a time such as 10m or 2h")
		}
		n.ExpiresAt = time.Now().Add(d).Format(time.RFC3339Nano)
		return nil
	})
	return withAppliance(f, args, 1, 100, func(c *client, rest []string) error {
		n.Text = strings.Join(rest, " ")
		var taken struct{ ID string }
		if err := c.do(ctx, http.MethodPost, "/api/v1/notifications", n, &taken); err != nil {
			return err
		}
		fmt.Fprintln(out, taken.ID)
		return nil
	})
}
