package main

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/plain"
)

func robotGestureCommand() *cobra.Command {
	r := &target{}
	var duration time.Duration
	c := r.register(&cobra.Command{
		Use:   "gesture ROBOT [NAME]",
		Short: "Make a robot perform a gesture; without a name, list the gestures",
		Example: `perch robot gesture kitchen wave
			perch robot gesture kitchen nod --for 2s`,
		RunE: func(c *cobra.Command, args []string) error {
			switch len(args) {
			case 1:
				var gestures []gestureLine
				return r.callAndPrint(c, http.MethodGet, "/api/v1/gestures", nil, &gestures, func(out io.Writer) {
					for _, g := range gestures {
						fmt.Fprintf(out, "%-12s %s\n", plain.Text(g.Name), plain.Text(g.About))
					}
				})
			case 2:
				body := map[string]any{"name": args[1], "duration_ms": duration.Milliseconds()}
				var result struct{ OK bool }
				return r.callAndPrint(c, http.MethodPost, robotPath(args[0])+"/gesture", body, &result, func(out io.Writer) {
					fmt.Fprintf(out, "%s: %s\n", plain.Text(args[0]), plain.Text(args[1]))
				})
			}
			return command.Usagef("only one gesture can be named")
		},
	})
	c.Flags().DurationVar(&duration, "for", 0, "how long the gesture lasts; 0 is its usual time")
	return c
}

// gestureLine is a gesture as the admin API returns it.
type gestureLine struct {
	Name, About string
	Duration    int64 `json:"duration_ms"`
}
