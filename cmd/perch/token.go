package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"perch/gateway/owner/admin"
	"perch/plain"
)

// writeToken prints the address, the token and the IDs that an owner enters in a robot or another client.
func writeToken(out io.Writer, t admin.Token) {
	fmt.Fprintf(out, "address    %s\ntoken      %s\nDevice-Id  %s\nClient-Id  %s\n", plain.Text(t.Address), plain.Text(t.Token), plain.Text(t.DeviceID),
		cmp.Or(plain.Text(t.ClientID), "(leave it empty)"))
}

func robotAddCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "add NAME...",
		Short: "Add a robot that makes no check-in, and print the address and the token to enter in it",
		Long: `For a robot that has fields for an address and a token instead of an OTA address, such as one with the community's firmware for
Stack-chan. It is adopted at once. In a terminal the command also draws address and token as a QR code for a phone.`,
		Example: "perch robot add desk",
		RunE: func(c *cobra.Command, args []string) error {
			var t admin.Token
			body := map[string]string{"name": strings.Join(args, " ")}
			err := r.callAndPrint(c, http.MethodPost, "/api/v1/devices", body, &t, func(out io.Writer) {
				writeToken(out, t)
				fmt.Fprintf(out, "A robot that has no fields for Device-Id and Client-Id, or sends its own, can connect, too. perch robot forget %s voids the token.\n",
					plain.Text(string(t.Robot)))
			})
			f, isFile := c.OutOrStdout().(*os.File)
			if err != nil || r.json || !isFile || !isTerminal(f) {
				return err
			}
			var code struct{ Rows []string }
			if err := r.call(c, http.MethodGet, "/api/v1/qr?text="+url.QueryEscape(t.Address+"\n"+t.Token), nil, &code); err != nil {
				return err
			}
			_, err = fmt.Fprint(f, drawQR(code.Rows))
			return err
		},
	})
}

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
				writeToken(out, t)
				fmt.Fprintf(out, "The token is good for this Device-Id and Client-Id only, until perch robot forget %s.\n", plain.Text(string(t.Robot)))
			})
		},
	})
	c.Flags().StringVar(&clientID, "client", "", "`ID` that the client sends as Client-Id; without it, the command prints the Client-Id to send")
	return c
}
