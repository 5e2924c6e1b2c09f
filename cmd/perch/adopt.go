package main

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"perch/command"
)

func robotAdoptCommand() *cobra.Command {
	r, client, replace := &target{}, "", false
	c := r.register(&cobra.Command{
		Use:   "adopt ROBOT|CODE",
		Short: "Adopt a robot, by its name or address or by the code that it shows",
		Example: `perch robot adopt 123456
			perch robot adopt a0b1c2d3e4f5 --client 192.168.1.40
			perch robot adopt a0b1c2d3e4f5 --replace`,
		RunE: func(c *cobra.Command, args []string) error {
			var before, d deviceLine
			_ = r.call(c, http.MethodGet, robotPath(args[0]), nil, &before) // fails for a code, which only a robot that is not adopted shows
			body := map[string]any{"robot": args[0], "client": client, "replace": replace}
			return r.callAndPrint(c, http.MethodPost, "/api/v1/adopt", body, &d, func(out io.Writer) {
				if !d.Adopted {
					fmt.Fprintf(out, "%s may talk again within seconds. If it does, and it is yours, adopt it: perch robot adopt %s\n", d.ID, d.ID)
					return
				}
				if before.Adopted && len(before.Claimants) == 0 {
					fmt.Fprintf(out, "%s was adopted already\n", d.ID)
					return
				}
				fmt.Fprintf(out, "%s is adopted. A robot that waits to be adopted continues within seconds, any other when it next talks.\n", d.ID)
			})
		},
	})
	c.Flags().StringVar(&client, "client", "", "`ID`, a Client-Id or an IP address: which client to adopt if several claim ROBOT's address")
	c.Flags().BoolVar(&replace, "replace", false, "replace ROBOT by the robot that waits under the same address, if that shows no code. "+
		"Anybody can claim an address: until you adopt the new robot once more, it may only talk")
	return c
}

func robotForgetCommand() *cobra.Command {
	r, strangers := &target{}, false
	c := r.register(&cobra.Command{
		Use:   "forget [ROBOT]",
		Short: "Forget a robot, or all robots that are not adopted",
		Example: `perch robot forget kitchen
			perch robot forget --strangers`,
		RunE: func(c *cobra.Command, args []string) error {
			if strangers != (len(args) == 0) {
				return command.Usagef("name a robot, or use --strangers, not both")
			}
			result := struct {
				Forgotten int `json:"forgotten"`
			}{len(args)}
			if strangers {
				return r.callAndPrint(c, http.MethodDelete, "/api/v1/strangers", nil, &result, func(out io.Writer) {
					fmt.Fprintf(out, "strangers forgotten: %d\n", result.Forgotten)
				})
			}
			if err := r.call(c, http.MethodDelete, robotPath(args[0]), nil, nil); err != nil {
				return err
			}
			return r.print(c, result, func(out io.Writer) { fmt.Fprintf(out, "%s is forgotten\n", args[0]) })
		},
	})
	c.Flags().BoolVar(&strangers, "strangers", false, "forget all robots that are not adopted, instead of one robot")
	return c
}
