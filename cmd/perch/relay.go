package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"perch/gateway/avatar/relay"
	"perch/plain"
)

// relaysPath is the path of the relays in the admin API.
const relaysPath = "/api/v1/relays"

// relayCommand groups the commands about relays: connections to avatar programs such as VTube
// Studio.
func relayCommand() *cobra.Command {
	c := &cobra.Command{Use: "relay", Short: "List the avatar programs that show the agent, and try them"}
	c.AddCommand(relayListCommand(), relayTryCommand())
	return c
}

func relayListCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "list",
		Short: "List the configured avatar programs and their conditions",
		RunE: func(c *cobra.Command, _ []string) error {
			var list []relay.Status
			return r.callAndPrint(c, http.MethodGet, relaysPath, nil, &list, func(out io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(out, "no avatar program is configured under relays")
				}
				for _, l := range list {
					condition := "away"
					if l.OK {
						condition = "ok"
					}
					fmt.Fprintf(out, "%-16s %-20s %-5s %s\n", plain.Text(l.Name), plain.Text(l.Title), condition,
						plain.Text(cmp.Or(l.Note, l.URL)))
				}
			})
		},
	})
}

func relayTryCommand() *cobra.Command {
	r := &target{}
	var interval time.Duration
	c := r.register(&cobra.Command{
		Use:   "try NAME",
		Short: "Make an avatar program show every state, face and gesture in turn",
		Example: `perch relay try vtube_studio
			perch relay try obs --each 3s`,
		RunE: func(c *cobra.Command, args []string) error {
			path := relaysPath + "/" + url.PathEscape(args[0]) + "/try?each_ms=" + strconv.FormatInt(interval.Milliseconds(), 10)
			return r.streamAndPrint(c, http.MethodPost, path)
		},
	})
	c.Flags().DurationVar(&interval, "each", 1500*time.Millisecond, "how long each state, face and gesture is shown")
	return c
}
