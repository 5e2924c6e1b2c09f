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
		Long: `It is for the health checks of containers, and fails where a part fails without which nothing works. perch doctor tries all
parts, and names the cures.`,
		RunE: func(c *cobra.Command, _ []string) error {
			var answer struct {
				OK bool `json:"ok"`
			}
			return r.ask(c, http.MethodGet, "/health", nil, &answer, func(out io.Writer) { fmt.Fprintln(out, "healthy") })
		},
	})
}
