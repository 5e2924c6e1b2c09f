package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"perch/plain"
)

func robotPlayCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "play ROBOT [NAME]...",
		Short: "Make a robot play music of the setting music; off stops it; without a name, list the music",
		Example: `perch robot play kitchen jazz
			perch robot play kitchen off`,
		RunE: func(c *cobra.Command, args []string) error {
			name := strings.Join(args[1:], " ")
			var result struct{ OK bool }
			switch name {
			case "":
				var names []string
				return r.callAndPrint(c, http.MethodGet, "/api/v1/music", nil, &names, func(out io.Writer) {
					for _, n := range names {
						fmt.Fprintln(out, plain.Text(n))
					}
				})
			case "off":
				return r.callAndPrint(c, http.MethodDelete, robotPath(args[0])+"/music", nil, &result, func(out io.Writer) {
					fmt.Fprintf(out, "%s: the music is off\n", plain.Text(args[0]))
				})
			}
			return r.callAndPrint(c, http.MethodPost, robotPath(args[0])+"/music", map[string]string{"name": name}, &result, func(out io.Writer) {
				fmt.Fprintf(out, "%s: %s\n", plain.Text(args[0]), plain.Text(name))
			})
		},
	})
}
