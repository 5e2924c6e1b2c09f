package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/device"
)

// keyless is the appliance's address for programs on its own machine, which need
// no token there.
const keyless = "http://127.0.0.1:8004"

// reach is the appliance that a command asks, and the proof that its owner asks.
type reach struct {
	url       string
	tokenFile string
}

func (r *reach) register(c *cobra.Command) {
	c.Flags().StringVar(&r.url, "url", cmp.Or(os.Getenv("PERCH_URL"), keyless), "`URL` of the appliance")
	c.Flags().StringVar(&r.tokenFile, "token-file", "", "`FILE` that holds the admin token")
}

// request returns a request to the admin API, for a path below /api/v1.
func (r *reach) request(ctx context.Context, method string, body io.Reader, query url.Values, path ...string) (*http.Request, error) {
	u, err := url.Parse(strings.TrimSuffix(r.url, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, command.Usagef("--url %q is not an address such as http://perch.local:8003", r.url)
	}
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	u = u.JoinPath(append([]string{"api/v1"}, path...)...)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("the address %q cannot be used: %w", r.url, err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return request, nil
}

// robotNamed returns a robot's id, or its name, as an appliance finds it.
func robotNamed(robot string) (string, error) {
	if id, err := device.ParseID(robot); err == nil {
		return string(id), nil
	}
	return device.CheckName(robot)
}

func (r *reach) token() (string, error) {
	if r.tokenFile == "" {
		return os.Getenv("PERCH_TOKEN"), nil
	}
	text, err := os.ReadFile(r.tokenFile)
	if errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("%s may not be read by this user; use sudo, or copy the token", r.tokenFile)
	}
	if err != nil {
		return "", fmt.Errorf("read the admin token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// mostRefusal limits the body of an error, in bytes.
const mostRefusal = 64 << 10

// refusedWith returns the message of an appliance's error, or nil without one.
func refusedWith(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostRefusal))
	var body struct{ Error struct{ Message string } }
	if err == nil && json.Unmarshal(text, &body) == nil && body.Error.Message != "" {
		return errors.New(plainText(body.Error.Message))
	}
	return nil
}
