package main

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
)

func healthCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "health",
		Short: "Succeed if the running appliance is healthy",
		Long: `This is for the health checks of containers. It fails if a vital part of the appliance fails. perch doctor tries all
parts, and says how to correct faults.`,
		RunE: func(c *cobra.Command, _ []string) error {
			var result struct {
				OK bool `json:"ok"`
			}
			return r.callAndPrint(c, http.MethodGet, "/health", nil, &result, func(out io.Writer) { fmt.Fprintln(out, "healthy") })
		},
	})
}
