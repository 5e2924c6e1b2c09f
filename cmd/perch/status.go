package main

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"perch/gateway/owner/admin"
	"perch/plain"
)

func statusCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "status",
		Short: "Print the condition of the running appliance and its parts",
		Long:  "perch doctor also tries each part, and says how to correct faults.",
		RunE: func(c *cobra.Command, _ []string) error {
			var s admin.Status
			return r.callAndPrint(c, http.MethodGet, "/api/v1/status", nil, &s, func(out io.Writer) { writeStatus(out, s) })
		},
	})
}

func writeStatus(out io.Writer, s admin.Status) {
	fmt.Fprintf(out, "perch %s, id %s, runs since %s\n", plain.Text(s.Version), plain.Text(s.ID), s.Started.Local().Format(time.DateTime))
	fmt.Fprintf(out, "robots: %d, connected: %d; notifications that wait: %d\n", s.Robots, s.Reached, s.Notices)
	for _, p := range s.Parts {
		mark := "ok"
		if !p.OK {
			mark = "FAIL"
		}
		fmt.Fprintf(out, "%-4s  %-22s %s\n", mark, plain.Text(p.Name), plain.Text(p.Note))
	}
}
