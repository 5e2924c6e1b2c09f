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

// relaysAt is where the admin API has the relays.
const relaysAt = "/api/v1/relays"

// relayCommand groups the commands of avatar programs.
func relayCommand() *cobra.Command {
	c := &cobra.Command{Use: "relay", Short: "List the avatar programs that show the agent, and try them"}
	c.AddCommand(relaysCommand(), tryRelayCommand())
	return c
}

func relaysCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "list",
		Short: "List the avatar programs that are connected to, and how each does",
		RunE: func(c *cobra.Command, _ []string) error {
			var list []relay.Status
			return r.ask(c, http.MethodGet, relaysAt, nil, &list, func(out io.Writer) {
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

func tryRelayCommand() *cobra.Command {
	r := &target{}
	var each time.Duration
	c := r.register(&cobra.Command{
		Use:   "try NAME",
		Short: "Walk an avatar program through every state, face and gesture, to look at it",
		Example: `perch relay try vtube_studio
			perch relay try obs --each 3s`,
		RunE: func(c *cobra.Command, args []string) error {
			at := relaysAt + "/" + url.PathEscape(args[0]) + "/try?each_ms=" + strconv.FormatInt(each.Milliseconds(), 10)
			return r.stream(c, http.MethodPost, at)
		},
	})
	c.Flags().DurationVar(&each, "each", 1500*time.Millisecond, "how long each is shown")
	return c
}
