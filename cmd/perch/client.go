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
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"perch/cmd/perch/config"
	"perch/cmd/perch/doctor"
	"perch/limit"
	"perch/plain"
)

// client talks to a running appliance: over its socket, or by URL and token.
type client struct {
	base  string
	token string
	from  string // where the token is from, in words
	http  *http.Client
}

// target holds the flags that say which appliance a command is for.
type target struct {
	output
	url, tokenFile, data string

	services func(context.Context) (string, error) // the properties of the service's unit; nil asks systemd
}

func (r *target) register(c *cobra.Command) *cobra.Command {
	f := r.output.register(c).Flags()
	f.StringVar(&r.url, "url", os.Getenv("PERCH_URL"), "`URL` of the appliance")
	f.StringVar(&r.tokenFile, "token-file", "", "`FILE` that holds the admin token")
	f.StringVar(&r.data, "data", "", "`DIR` of the data of the appliance on this machine")
	return c
}

// answerWithin is how long a request may take.
const answerWithin = 15 * time.Second

func (r *target) client() (*client, error) {
	if r.url != "" {
		token, from, err := r.token()
		return &client{base: baseURL(r.url), token: token, from: from, http: &http.Client{Timeout: answerWithin}}, err
	}
	path, err := r.socket()
	if err != nil {
		return nil, r.explain(context.Background(), err) // systemd is asked for five seconds at most
	}
	return overSocket(path), nil
}

// overSocket returns a client of the appliance that serves a socket.
func overSocket(path string) *client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &client{base: "http://perch", http: &http.Client{Timeout: answerWithin, Transport: &http.Transport{DialContext: dial}}}
}

// explain adds to an ErrNoneRuns what systemd knows of the service, if this machine has it.
func (r *target) explain(ctx context.Context, err error) error {
	ask := r.services
	if ask == nil {
		if _, booted := os.Stat("/run/systemd/system"); booted != nil {
			return err
		}
		ask = doctor.UnitProperties
	}
	text, failed := ask(ctx)
	if !errors.Is(err, doctor.ErrNoneRuns) || failed != nil || strings.Contains(text, "LoadState=not-found") ||
		strings.Contains(text, "ActiveState=active\n") {
		return err
	}
	switch fine, wrong := doctor.UnitCondition(text); {
	case wrong != nil:
		return fmt.Errorf("%w: %w", doctor.ErrNoneRuns, wrong)
	case strings.Contains(text, "ActiveState=activating"):
		return fmt.Errorf("%w yet: %s; try again in a moment", doctor.ErrNoneRuns, fine)
	}
	return fmt.Errorf("%w: the service perch is stopped; sudo systemctl start perch", doctor.ErrNoneRuns)
}

// baseURL returns the URL that a person means: perch.local:8003 is http://perch.local:8003.
func baseURL(url string) string {
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	return strings.TrimSuffix(url, "/")
}

// socket finds the socket of the appliance on this machine.
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
			"%w (there is no %s); start one with perch serve, or name one with --url; where it is a service, systemctl status perch says why it does not run", doctor.ErrNoneRuns, strings.Join(candidates, " and no "))
}

// running returns a client of the appliance. running is false if none runs on this machine: then
// no program uses its data, and a command can work on that directly.
func (r *target) running(ctx context.Context) (c *client, running bool, err error) {
	if r.url == "" {
		path, err := r.socket()
		if errors.Is(err, doctor.ErrNoneRuns) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
			return nil, false, nil // an appliance that was killed leaves its socket behind
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

// tokenRefused returns the error for a token that was refused, and says where the right one is:
// the paths in the appliance's own answer are those of its machine.
func (c *client) tokenRefused() error {
	const right = "where it is installed, sudo cat /var/lib/perch/admin-token shows the right one on the machine that it runs on; else it is the file admin-token in the folder named with --data"
	if c.token == "" {
		return fmt.Errorf("the appliance at %s wants its admin token: --token-file FILE, or PERCH_TOKEN; %s", c.base, right)
	}
	return fmt.Errorf("the appliance at %s refuses the token in %s; %s", c.base, c.from, right)
}

// call sends a request and decodes its answer into into, unless that is nil.
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
	answer, err := io.ReadAll(io.LimitReader(response.Body, limit.Answer))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if response.StatusCode >= 300 {
		return c.refusal(response, answer)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the answer is not the appliance's: %w", err)
	}
	return nil
}

// send sends a request with the client's token, if it has one.
func (c *client) send(ctx context.Context, by *http.Client, method, path string, body io.Reader, kind string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("the address %q cannot be used: %w", c.base, err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := by.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the appliance does not answer: %w", errors.Unwrap(err))
	}
	return answer, nil
}

// Get implements doctor.APIClient.
func (c *client) Get(ctx context.Context, path string, into any) error {
	return c.call(ctx, http.MethodGet, path, nil, into)
}

// refusal returns the error of an answer whose status is not 2xx.
func (c *client) refusal(r *http.Response, answer []byte) error {
	var body struct{ Error struct{ Message string } }
	switch {
	case r.StatusCode == http.StatusUnauthorized:
		return c.tokenRefused()
	case json.Unmarshal(answer, &body) == nil && body.Error.Message != "":
		return errors.New(body.Error.Message)
	}
	return fmt.Errorf("the appliance answered %s", r.Status)
}

// call sends a request of a command, and decodes the appliance's answer into answer.
func (r *target) call(c *cobra.Command, method, path string, body, answer any) error {
	a, err := r.client()
	if err != nil {
		return err
	}
	return a.call(c.Context(), method, path, body, answer)
}

// ask sends a request of a command, and prints the appliance's answer.
func (r *target) ask(c *cobra.Command, method, path string, body, answer any, show func(out io.Writer)) error {
	if err := r.call(c, method, path, body, answer); err != nil {
		return err
	}
	return r.print(c, answer, show)
}

// stream sends a request of a command, and prints the lines of the answer as they come.
func (r *target) stream(c *cobra.Command, method, path string) error {
	a, err := r.client()
	if err != nil {
		return err
	}
	answer, err := a.exchange(c.Context(), method, path, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		fmt.Fprintln(c.OutOrStdout(), plain.Text(lines.Text()))
	}
	return lines.Err()
}
