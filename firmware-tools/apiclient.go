package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/device"
	"perch/limit"
	"perch/plain"
)

// localURL is the address of an appliance on this machine. Programs on the same machine may
// read from the appliance without a token.
const localURL = "http://127.0.0.1:8004"

// socketHost is a made-up host name: requests to it are sent to the appliance's Unix socket.
const socketHost = "perch.sock"

// localSocket returns the path of the Unix socket of the appliance on this machine, or "" if no
// connection to such a socket succeeds. Requests over this socket have the rights of the appliance's
// owner.
func localSocket() string {
	for _, path := range []string{"/run/perch/perch.sock", "/var/lib/perch/perch.sock", "data/perch.sock"} {
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close() // the connection was only a test
			return path
		}
	}
	return ""
}

// dial connects to the appliance's Unix socket if the host in address is socketHost.
// Otherwise it connects to address.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	if address == socketHost+":80" {
		network, address = "unix", localSocket()
	}
	return d.DialContext(ctx, network, address)
}

// apiClient sends requests to an appliance's admin API.
type apiClient struct {
	url       string // URL of the appliance
	tokenFile string // file with the admin token; empty to take the token from PERCH_TOKEN
}

// register defines the client's flags.
func (r *apiClient) register(c *cobra.Command) {
	c.Flags().StringVar(&r.url, "url", cmp.Or(os.Getenv("PERCH_URL"), localURL), "`URL` of the appliance")
	c.Flags().StringVar(&r.tokenFile, "token-file", "", "`FILE` that contains the admin token")
}

// request returns a request to the admin API. path lists the elements of the URL path after
// /api/v1. If the URL is localURL, the request goes to the appliance's Unix socket, provided that
// this user can connect to the socket. An invalid URL is a usage error.
func (r *apiClient) request(ctx context.Context, method string, body io.Reader, query url.Values, path ...string) (*http.Request, error) {
	address := r.url
	if address == localURL && localSocket() != "" {
		address = "http://" + socketHost
	}
	u, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, command.Usagef("--url %q is not a URL such as http://perch.local:8003", r.url)
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

// robotNamed checks a robot ID or robot name from the command line, and returns it in the
// spelling that the admin API expects.
func robotNamed(robot string) (string, error) {
	if id, err := device.ParseID(robot); err == nil {
		return string(id), nil
	}
	return device.CheckName(robot)
}

// token returns the admin token from the file of --token-file or, without this option, from the
// environment variable PERCH_TOKEN. It returns "" if neither is set.
func (r *apiClient) token() (string, error) {
	if r.tokenFile == "" {
		return os.Getenv("PERCH_TOKEN"), nil
	}
	text, err := os.ReadFile(r.tokenFile)
	if errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("this user may not read %s; use sudo, or copy the token", r.tokenFile)
	}
	if err != nil {
		return "", fmt.Errorf("read the admin token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// post sends a POST request with a value as its JSON body, or without a body if value is nil.
func (r *apiClient) post(ctx context.Context, value any, path ...string) error {
	var body io.Reader
	if value != nil {
		text, _ := json.Marshal(value) // cannot fail: strings, numbers and booleans
		body = bytes.NewReader(text)
	}
	request, err := r.request(ctx, http.MethodPost, body, nil, path...)
	if err != nil {
		return err
	}
	return send(request)
}

// responseTimeout bounds the wait for the response to a request. It is long enough for an appliance
// with a slow SD card to check an uploaded image.
const responseTimeout = time.Minute

// send calls doRequest with responseTimeout, and ignores the body of the response.
func send(request *http.Request) error {
	response, err := doRequest(request, responseTimeout)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// doRequest sends a request and returns the response, whose body the caller must close. The response
// must begin within timeout after the request was sent. If the appliance rejects the request, the
// error contains the appliance's message.
func doRequest(request *http.Request, timeout time.Duration) (*http.Response, error) {
	client := http.Client{Transport: &http.Transport{ResponseHeaderTimeout: timeout, ExpectContinueTimeout: 2 * time.Second,
		DisableKeepAlives: true, DialContext: dial}}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the appliance does not respond: %w", errors.Unwrap(err))
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, limit.Body)) // refusal finds no message in an incomplete body
	if message := refusal(text); message != "" {
		return nil, errors.New(message)
	}
	return nil, fmt.Errorf("the appliance responded with %s", response.Status)
}

// refusal returns the message in the body of an error response, or "" if the body has no
// message.
func refusal(text []byte) string {
	var body struct{ Error struct{ Message string } }
	_ = json.Unmarshal(text, &body) // the response of a proxy may not be JSON
	return plain.Line(body.Error.Message)
}
