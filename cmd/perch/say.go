package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

func say(ctx context.Context, args []string, out io.Writer) error {
	return withAppliance(newFlags("say"), args, 2, 100, func(c *client, rest []string) error {
		var taken struct{ Queued bool }
		body := map[string]string{"text": strings.Join(rest[1:], " ")}
		if err := c.do(ctx, http.MethodPost, robotAt(rest[0])+"/say", body, &taken); err != nil {
			return err
		}
		if taken.Queued {
			fmt.Fprintln(out, "queued until the robot next connects")
		}
		return nil
	})
}
