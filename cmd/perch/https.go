package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"perch/gateway/owner/web"
	"perch/plain"
)

func httpsCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "https",
		Short: "Serve the page over https too, and print the fingerprint of its certificate authority",
		Long: `Browsers allow the microphone on other devices only over https. The first call makes a certificate authority that can sign for
.local names and private addresses only, and opens the address. The page explains how a device comes to trust it: compare there
the fingerprint that this command prints.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var h web.HTTPSAddress
			return r.callAndPrint(c, http.MethodPost, "/api/v1/https", nil, &h, func(out io.Writer) {
				fmt.Fprintln(out, plain.Text(strings.Join(h.URLs, "\n")))
				fmt.Fprintf(out, "authority: %s\nSHA-256: %s\n", plain.Text(h.Authority), plain.Text(h.Fingerprint))
			})
		},
	})
}
