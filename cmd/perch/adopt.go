package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

func adopt(ctx context.Context, args []string, out io.Writer) error {
	f := newFlags("adopt")
	replace := f.Bool("replace", false,
		"let in whoever waits under ROBOT's address in its place, where it shows no code. Anybody can claim an address: until you adopt it once more it may talk, and nothing else")
	return withAppliance(f, args, 1, 1, func(c *client, rest []string) error {
		var d deviceLine
		if err := c.do(ctx, http.MethodPost, "/api/v1/adopt", map[string]any{"robot": rest[0], "replace": *replace}, &d); err != nil {
			return err
		}
		if !d.Adopted {
			fmt.Fprintf(out, "%s may talk again within seconds. If it does, and it is yours, adopt it: perch adopt %s\n", d.ID, d.ID)
			return nil
		}
		fmt.Fprintf(out, "%s is adopted; one that waits goes on within seconds, any other with its next talk\n", d.ID)
		return nil
	})
}

func forget(ctx context.Context, args []string, out io.Writer) error {
	f := newFlags("forget")
	strangers := f.Bool("strangers", false, "forget every robot that nobody has adopted, instead of one")
	return withAppliance(f, args, 0, 1, func(c *client, rest []string) error {
		if *strangers != (len(rest) == 0) {
			return usageError("forget takes a robot, or --strangers")
		}
		if *strangers {
			var gone struct{ Forgotten int }
			if err := c.do(ctx, http.MethodDelete, "/api/v1/strangers", nil, &gone); err != nil {
				return err
			}
			fmt.Fprintf(out, "strangers forgotten: %d\n", gone.Forgotten)
			return nil
		}
		if err := c.do(ctx, http.MethodDelete, robotAt(rest[0]), nil, nil); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s is forgotten\n", rest[0])
		return nil
	})
}
