package main

import (
	"bufio"
	"bytes"
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
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"perch/cmd/perch/config"
	"perch/cmd/perch/doctor"
	"perch/command"
	"perch/limit"
	"perch/plain"
)

// client sends requests to a running appliance, through a Unix socket or to a URL.
type client struct {
	base      string // the scheme and host of requests; the host is arbitrary for a socket
	token     string // the admin token; empty for a socket
	tokenFrom string // the file or variable that contains the token, for errors
	http      *http.Client
}

// target holds the flags that choose the appliance that a command connects to.
type target struct {
	output
	url, tokenFile, data string

	unitProperties func(context.Context) (string, error) // replaces doctor.UnitProperties in tests; may be nil
}

func (r *target) register(c *cobra.Command) *cobra.Command {
	f := r.output.register(c).Flags()
	f.StringVar(&r.url, "url", os.Getenv("PERCH_URL"), "`URL` of the appliance")
	f.StringVar(&r.tokenFile, "token-file", "", "`FILE` that holds the admin token")
	f.StringVar(&r.data, "data", "", "`DIR` of the data of the appliance on this machine")
	return c
}

// requestTimeout is the maximum duration of a request.
const requestTimeout = 15 * time.Second

// client returns a client of the appliance that the flags name.
func (r *target) client() (*client, error) {
	if r.url != "" {
		token, from, err := r.token()
		return &client{base: baseURL(r.url), token: token, tokenFrom: from, http: &http.Client{Timeout: requestTimeout}}, err
	}
	path, err := r.socket()
	if err != nil {
		return nil, r.explainNotRunning(context.Background(), err) // systemctl gets at most five seconds
	}
	return socketClient(path), nil
}

// socketClient returns a client of the appliance that serves the socket at path.
func socketClient(path string) *client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &client{base: "http://perch", http: &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DialContext: dial}}}
}

// explainNotRunning returns err, with one exception: if err says that no appliance runs (doctor.ErrNotRunning),
// and Perch is installed as a systemd service that is not active, the result says what state the service is in.
func (r *target) explainNotRunning(ctx context.Context, err error) error {
	unitProperties := r.unitProperties
	if unitProperties == nil {
		if _, statErr := os.Stat("/run/systemd/system"); statErr != nil {
			return err // this machine does not use systemd
		}
		unitProperties = doctor.UnitProperties
	}
	text, unitErr := unitProperties(ctx)
	if !errors.Is(err, doctor.ErrNotRunning) || unitErr != nil || strings.Contains(text, "LoadState=not-found") ||
		strings.Contains(text, "ActiveState=active\n") {
		return err
	}
	switch note, fault := doctor.UnitCondition(text); {
	case fault != nil:
		return fmt.Errorf("%w: %w", doctor.ErrNotRunning, fault)
	case strings.Contains(text, "ActiveState=activating"):
		return fmt.Errorf("%w yet: %s; try again in a moment", doctor.ErrNotRunning, note)
	}
	return fmt.Errorf("%w: the service perch is stopped; sudo systemctl start perch", doctor.ErrNotRunning)
}

// baseURL adds a missing scheme to a URL, and removes a slash at the end: perch.local:8003/ becomes
// http://perch.local:8003.
func baseURL(url string) string {
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	return strings.TrimSuffix(url, "/")
}

// socket returns the path of the socket of the appliance on this machine. Its error may wrap
// doctor.ErrNotRunning.
func (r *target) socket() (string, error) {
	candidates := []string{filepath.Join(config.SystemRun, "perch.sock"), filepath.Join(config.Data(r.data), "perch.sock")}
	if r.data != "" {
		candidates = candidates[1:]
	}
	for _, path := range candidates {
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return "", fmt.Errorf("%s may not be opened by this user; join the group perch, or use sudo", path)
		}
	}
	return "",
		fmt.Errorf(
			"%w (there is no %s); start one with perch serve, or name one with --url; if it is a service, systemctl status perch says why it does not run", doctor.ErrNotRunning, strings.Join(candidates, " and no "))
}

// running returns a client of the appliance. The result running is false if no appliance runs on this
// machine; a command can then work on the data directory directly, because no other program uses it.
// With --url, running is true without a check.
func (r *target) running(ctx context.Context) (c *client, running bool, err error) {
	if r.url == "" {
		path, err := r.socket()
		if errors.Is(err, doctor.ErrNotRunning) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
			return nil, false, nil // an appliance that was killed has left its socket
		case errors.Is(err, fs.ErrPermission):
			return nil, false, fmt.Errorf("%s may not be opened by this user; join the group perch, or use sudo", path)
		case err != nil:
			return nil, false, fmt.Errorf("the appliance does not answer: %w", err)
		}
		_ = conn.Close()
	}
	c, err = r.client()
	return c, err == nil, err
}

// token returns the admin token, and the file or variable that contains it.
func (r *target) token() (token, from string, err error) {
	if r.tokenFile == "" {
		return os.Getenv("PERCH_TOKEN"), "PERCH_TOKEN", nil
	}
	text, err := os.ReadFile(r.tokenFile)
	if errors.Is(err, fs.ErrPermission) {
		return "", "", fmt.Errorf("%s may not be read by this user; use sudo, or copy the token", r.tokenFile)
	}
	if err != nil {
		return "", "", fmt.Errorf("read the admin token: %w", err)
	}
	return strings.TrimSpace(string(text)), r.tokenFile, nil
}

// tokenRefused returns the error for a token that the appliance has refused. The error says where to find
// the right token. The message in the response is not shown, because it may name paths of another
// machine.
func (c *client) tokenRefused() error {
	const right = "on the machine with the service, sudo cat /var/lib/perch/admin-token shows the right one; without the service it is the file admin-token in the folder named with --data"
	if c.token == "" {
		return fmt.Errorf("the appliance at %s requires its admin token: --token-file FILE, or PERCH_TOKEN; %s", c.base, right)
	}
	return fmt.Errorf("the appliance at %s refuses the token in %s; %s", c.base, c.tokenFrom, right)
}

// call sends a request with body as JSON. It decodes the response into the value that into points to,
// unless into is nil.
func (c *client) call(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	response, err := c.send(ctx, c.http, method, path, bytes.NewReader(text), "application/json")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, limit.Answer))
	if err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	if response.StatusCode >= 300 {
		return c.responseError(response, text)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("decode the response of the appliance: %w", err)
	}
	return nil
}

// send sends a request through httpClient, with the admin token if c has one. contentType may be empty.
func (c *client) send(ctx context.Context, httpClient *http.Client, method, path string, body io.Reader, contentType string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("the address %q cannot be used: %w", c.base, err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := httpClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the appliance does not answer: %w", errors.Unwrap(err))
	}
	return response, nil
}

// Get implements doctor.APIClient.
func (c *client) Get(ctx context.Context, path string, into any) error {
	return c.call(ctx, http.MethodGet, path, nil, into)
}

// responseError returns the error for a response whose status is not 2xx. text is its body.
func (c *client) responseError(r *http.Response, text []byte) error {
	var body struct{ Error struct{ Message string } }
	switch {
	case r.StatusCode == http.StatusUnauthorized:
		return c.tokenRefused()
	case json.Unmarshal(text, &body) == nil && body.Error.Message != "":
		return errors.New(body.Error.Message)
	}
	return fmt.Errorf("the appliance answered %s", r.Status)
}

// call sends a request for the command c. It decodes the response into the value that into points to,
// unless into is nil.
func (r *target) call(c *cobra.Command, method, path string, body, into any) error {
	a, err := r.client()
	if err != nil {
		return err
	}
	return a.suggestRobot(c.Context(), path, a.call(c.Context(), method, path, body, into))
}

// suggestRobot adds the robots with similar names to the error of a request to a robot that does not exist.
func (c *client) suggestRobot(ctx context.Context, path string, err error) error {
	escaped, isRobot := strings.CutPrefix(path, robotPath(""))
	if err == nil || !isRobot {
		return err
	}
	escaped, _, _ = strings.Cut(escaped, "/")
	robot, _ := url.PathUnescape(escaped) // path is from robotPath
	var list []deviceLine
	if c.Get(ctx, strings.TrimSuffix(robotPath(""), "/"), &list) != nil {
		return err
	}
	var names []string
	for _, d := range list {
		if strings.EqualFold(d.Name, robot) || strings.EqualFold(d.ID, robot) {
			return err // the error has another cause
		}
		names = append(names, d.ID)
		if d.Name != "" {
			names = append(names, d.Name)
		}
	}
	return fmt.Errorf("%w%s", err, command.DidYouMean(robot, names))
}

// callAndPrint sends a request for the command c, decodes the response into the value that into points
// to, and prints the value: as JSON with the flag --json, or else by calling show.
func (r *target) callAndPrint(c *cobra.Command, method, path string, body, into any, show func(out io.Writer)) error {
	if err := r.call(c, method, path, body, into); err != nil {
		return err
	}
	return r.print(c, into, show)
}

// streamAndPrint sends a request for the command c, and prints the lines of the response as they arrive.
func (r *target) streamAndPrint(c *cobra.Command, method, path string) error {
	a, err := r.client()
	if err != nil {
		return err
	}
	response, err := a.stream(c.Context(), method, path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		fmt.Fprintln(c.OutOrStdout(), plain.Text(lines.Text()))
	}
	return lines.Err()
}
