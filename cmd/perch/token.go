package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"perch/gateway/owner/admin"
	"perch/plain"
)

// robotTokenCommand returns the command perch robot token.
func robotTokenCommand() *cobra.Command {
	r, clientID := &target{}, ""
	c := r.register(&cobra.Command{
		Use:     "token ROBOT",
		Short:   "Print the address and the token of an adopted robot, for a client in which you can enter them",
		Example: "perch robot token 02:00:00:00:00:01 --client page",
		RunE: func(c *cobra.Command, args []string) error {
			var t admin.Token
			body := map[string]string{"client_id": clientID}
			return r.callAndPrint(c, http.MethodPost, robotPath(args[0])+"/token", body, &t, func(out io.Writer) {
				fmt.Fprintf(out, "address    %s\ntoken      %s\nDevice-Id  %s\nClient-Id  %s\n", plain.Text(t.Address), plain.Text(t.Token),
					plain.Text(t.DeviceID), cmp.Or(plain.Text(t.ClientID), "(leave it empty)"))
				fmt.Fprintf(out, "The token is good for this Device-Id and Client-Id only, until perch robot forget %s.\n", plain.Text(string(t.Robot)))
			})
		},
	})
	c.Flags().StringVar(&clientID, "client", "", "`ID` that the client sends as Client-Id; without it, the command prints the Client-Id to send")
	return c
}
