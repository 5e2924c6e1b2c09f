package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

func sayCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:     "say ROBOT TEXT...",
		Short:   "Have a robot speak, at once or when it next connects",
		Example: `perch robot say kitchen "dinner is ready"`,
		RunE: func(c *cobra.Command, args []string) error {
			var taken struct {
				Queued bool `json:"queued"`
			}
			body := map[string]string{"text": strings.Join(args[1:], " ")}
			return r.ask(c, http.MethodPost, robotAt(args[0])+"/say", body, &taken, func(out io.Writer) {
				if taken.Queued {
					fmt.Fprintln(out, "queued until the robot next connects")
				}
			})
		},
	})
}
