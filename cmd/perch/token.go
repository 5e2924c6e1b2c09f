package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"perch/device"
)

// tokenAnswer is what a client needs to connect, as the appliance returns it.
type tokenAnswer struct {
	Robot    string `json:"robot"`
	DeviceID string `json:"device_id"`
	ClientID string `json:"client_id"`
	Address  string `json:"address"`
	Token    string `json:"token"`
}

// showToken prints what connects a client that has fields for an address and a
// token.
func showToken(ctx context.Context, args []string, out io.Writer) error {
	f := newFlags("token")
	clientID := f.String("client", "", "`ID` that the client sends as Client-Id; without it the one is told that it has to send")
	asJSON := f.Bool("json", false, "print it as JSON")
	return withAppliance(f, args, 1, 1, func(c *client, rest []string) error {
		var t tokenAnswer
		body := map[string]string{"client_id": *clientID}
		if err := c.do(ctx, http.MethodPost, "/api/v1/devices/"+url.PathEscape(rest[0])+"/token", body, &t); err != nil {
			return err
		}
		if *asJSON {
			return json.NewEncoder(out).Encode(t)
		}
		_, err := fmt.Fprintf(out,
			"address    %s\ntoken      %s\nDevice-Id  %s\nClient-Id  %s\nThe token is good for this Device-Id and Client-Id only, until perch forget %s.\n",
			device.Plain(t.Address), device.Plain(t.Token), device.Plain(t.DeviceID), cmp.Or(device.Plain(t.ClientID), "(leave it empty)"),
			device.Plain(t.Robot))
		return err
	})
}
