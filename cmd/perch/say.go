package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

func robotSayCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:     "say ROBOT TEXT...",
		Short:   "Make a robot speak, at once or when it next connects",
		Example: `perch robot say kitchen "dinner is ready"`,
		RunE: func(c *cobra.Command, args []string) error {
			var result struct {
				Queued bool `json:"queued"`
			}
			body := map[string]string{"text": strings.Join(args[1:], " ")}
			return r.callAndPrint(c, http.MethodPost, robotPath(args[0])+"/say", body, &result, func(out io.Writer) {
				if result.Queued {
					fmt.Fprintln(out, "queued until the robot next connects")
				}
			})
		},
	})
}
