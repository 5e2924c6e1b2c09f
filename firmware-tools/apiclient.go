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

// keyless is the address for programs on the appliance's own machine, which need no token
// to read.
const keyless = "http://127.0.0.1:8004"

// socketHost is the host in the URL of a request that is sent to the appliance's socket.
const socketHost = "perch.sock"

// commandsSocket returns the socket of the appliance on this machine, whose users are
// trusted as its owner, or "" if this user cannot open it.
func commandsSocket() string {
	for _, path := range []string{"/run/perch/perch.sock", "/var/lib/perch/perch.sock", "data/perch.sock"} {
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close() // it was only a test
			return path
		}
	}
	return ""
}

// dial connects to the appliance that a request is for.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	if address == socketHost+":80" {
		network, address = "unix", commandsSocket()
	}
	return d.DialContext(ctx, network, address)
}

// apiClient sends requests to an appliance's admin API.
type apiClient struct {
	url       string
	tokenFile string
}

func (r *apiClient) register(c *cobra.Command) {
	c.Flags().StringVar(&r.url, "url", cmp.Or(os.Getenv("PERCH_URL"), keyless), "`URL` of the appliance")
	c.Flags().StringVar(&r.tokenFile, "token-file", "", "`FILE` that holds the admin token")
}

// request returns a request to the admin API, for a path below /api/v1.
func (r *apiClient) request(ctx context.Context, method string, body io.Reader, query url.Values, path ...string) (*http.Request, error) {
	at := r.url
	if at == keyless && commandsSocket() != "" {
		at = "http://" + socketHost
	}
	u, err := url.Parse(strings.TrimSuffix(at, "/"))
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

// robotNamed returns a robot's id or name in the spelling for the admin API.
func robotNamed(robot string) (string, error) {
	if id, err := device.ParseID(robot); err == nil {
		return string(id), nil
	}
	return device.CheckName(robot)
}

func (r *apiClient) token() (string, error) {
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

// post sends a value as JSON; nil sends no body.
func (r *apiClient) post(ctx context.Context, value any, path ...string) error {
	var body io.Reader
	if value != nil {
		text, _ := json.Marshal(value) // texts and numbers
		body = bytes.NewReader(text)
	}
	request, err := r.request(ctx, http.MethodPost, body, nil, path...)
	if err != nil {
		return err
	}
	return send(request)
}

// answerWithin is long enough for the check of an uploaded image on a slow card.
const answerWithin = time.Minute

// send sends a request and returns the appliance's error, if any.
func send(request *http.Request) error {
	answer, err := openRequest(request, answerWithin)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// openRequest sends a request and returns the answer, or the appliance's error.
func openRequest(request *http.Request, within time.Duration) (*http.Response, error) {
	client := http.Client{Transport: &http.Transport{ResponseHeaderTimeout: within, ExpectContinueTimeout: 2 * time.Second,
		DisableKeepAlives: true, DialContext: dial}}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the appliance does not answer: %w", errors.Unwrap(err))
	}
	if answer.StatusCode < 300 {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, limit.Body)) // an incomplete text is not JSON
	if message := refusal(text); message != "" {
		return nil, errors.New(message)
	}
	return nil, fmt.Errorf("the appliance answered %s", answer.Status)
}

// refusal returns the message of an appliance's error, or "".
func refusal(text []byte) string {
	var answer struct{ Error struct{ Message string } }
	_ = json.Unmarshal(text, &answer) // a proxy may answer differently
	return plain.Line(answer.Error.Message)
}
