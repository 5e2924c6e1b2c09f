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

func gestureCommand() *cobra.Command {
	r := &target{}
	var lasts time.Duration
	c := r.register(&cobra.Command{
		Use:   "gesture ROBOT [NAME]",
		Short: "Have a robot make a gesture; without a name, list those that there are",
		Example: `perch robot gesture kitchen wave
			perch robot gesture kitchen nod --for 2s`,
		RunE: func(c *cobra.Command, args []string) error {
			switch len(args) {
			case 1:
				var known []gestureLine
				return r.ask(c, http.MethodGet, "/api/v1/gestures", nil, &known, func(out io.Writer) {
					for _, g := range known {
						fmt.Fprintf(out, "%-12s %s\n", plain.Text(g.Name), plain.Text(g.About))
					}
				})
			case 2:
				body := map[string]any{"name": args[1], "duration_ms": lasts.Milliseconds()}
				var taken struct{ OK bool }
				return r.ask(c, http.MethodPost, robotAt(args[0])+"/gesture", body, &taken, func(out io.Writer) {
					fmt.Fprintf(out, "%s: %s\n", plain.Text(args[0]), plain.Text(args[1]))
				})
			}
			return command.Usagef("it is one gesture; give its name alone")
		},
	})
	c.Flags().DurationVar(&lasts, "for", 0, "how long it lasts; 0 is the gesture's own time")
	return c
}

// gestureLine is a gesture in the list.
type gestureLine struct {
	Name, About string
	Duration    int64 `json:"duration_ms"`
}
