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

// client talks to a running appliance: over its socket where that is there,
// else by URL and token.
type client struct {
	base  string
	token string
	from  string // where that was found, in words
	http  *http.Client
}

// target are the flags that say which appliance is meant.
type target struct {
	output
	url, tokenFile, data string

	services func(context.Context) (string, error) // what systemd says of the unit; nil asks it
}

func (r *target) register(c *cobra.Command) *cobra.Command {
	f := r.output.register(c).Flags()
	f.StringVar(&r.url, "url", os.Getenv("PERCH_URL"), "`URL` of the appliance")
	f.StringVar(&r.tokenFile, "token-file", "", "`FILE` that holds the admin token")
	f.StringVar(&r.data, "data", "", "`DIR` of the data of the appliance on this machine")
	return c
}

// answerWithin bounds one request.
const answerWithin = 15 * time.Second

func (r *target) client() (*client, error) {
	if r.url != "" {
		token, from, err := r.token()
		return &client{base: address(r.url), token: token, from: from, http: &http.Client{Timeout: answerWithin}}, err
	}
	path, err := r.socket()
	if err != nil {
		return nil, r.why(context.Background(), err) // which is asked for five seconds at most
	}
	return overSocket(path), nil
}

// overSocket talks to the appliance that serves a socket.
func overSocket(path string) *client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &client{base: "http://perch", http: &http.Client{Timeout: answerWithin, Transport: &http.Transport{DialContext: dial}}}
}

// why adds to the error that none runs what systemd knows of it, where this
// machine has the service.
func (r *target) why(ctx context.Context, err error) error {
	ask := r.services
	if ask == nil {
		if _, booted := os.Stat("/run/systemd/system"); booted != nil {
			return err
		}
		ask = doctor.AskSystemd
	}
	text, failed := ask(ctx)
	if !errors.Is(err, doctor.ErrNoneRuns) || failed != nil || strings.Contains(text, "LoadState=not-found") ||
		strings.Contains(text, "ActiveState=active\n") {
		return err
	}
	switch fine, wrong := doctor.ReadUnit(text); {
	case wrong != nil:
		return fmt.Errorf("%w: %w", doctor.ErrNoneRuns, wrong)
	case strings.Contains(text, "ActiveState=activating"):
		return fmt.Errorf("%w yet: %s; try again in a moment", doctor.ErrNoneRuns, fine)
	}
	return fmt.Errorf("%w: the service perch is stopped; sudo systemctl start perch", doctor.ErrNoneRuns)
}

// address is a URL as a person writes it: perch.local:8003 is one, too.
func address(url string) string {
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

// running is the appliance that is meant, and false where none runs on this
// machine: then no program uses its data, and a command can work on it directly.
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
			return nil, false, nil // one that was killed leaves its socket behind
		case errors.Is(err, fs.ErrPermission):
			return nil, false, fmt.Errorf("%s may not be opened by this user; join the group perch, or use sudo", path)
		case err != nil:
			return nil, false, fmt.Errorf("the appliance does not answer: %w", err)
		}
		_ = conn.Close() // it was only to see
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

// tokenRefused is an error with the token that was refused, and where the right
// one is. The paths in the appliance's own answer are those of its machine.
func (c *client) tokenRefused() error {
	const right = "where it is installed, sudo cat /var/lib/perch/admin-token shows the right one on the machine that it runs on; else it is the file admin-token in the folder named with --data"
	if c.token == "" {
		return fmt.Errorf("the appliance at %s wants its admin token: --token-file FILE, or PERCH_TOKEN; %s", c.base, right)
	}
	return fmt.Errorf("the appliance at %s refuses the token in %s; %s", c.base, c.from, right)
}

// call sends a request and decodes its answer into into, where that is not nil.
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
	if response.StatusCode == http.StatusUnauthorized {
		return c.tokenRefused()
	}
	if response.StatusCode >= 300 {
		return errorOf(response.Status, answer)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the answer is not the appliance's: %w", err)
	}
	return nil
}

// send sends a request, with the token where there is one.
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

// Get decodes what lies at a path of the admin API.
func (c *client) Get(ctx context.Context, path string, into any) error {
	return c.call(ctx, http.MethodGet, path, nil, into)
}

// errorOf is the sentence of an error the appliance answered with.
func errorOf(status string, answer []byte) error {
	var body struct{ Error struct{ Message string } }
	if json.Unmarshal(answer, &body) == nil && body.Error.Message != "" {
		return errors.New(body.Error.Message)
	}
	return fmt.Errorf("the appliance answered %s", status)
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
	patient := *a.http
	patient.Timeout = 0 // the answer takes its time
	answer, err := a.send(c.Context(), &patient, method, path, nil, "")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		text, err := io.ReadAll(io.LimitReader(answer.Body, limit.Answer))
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		if answer.StatusCode == http.StatusUnauthorized {
			return a.tokenRefused()
		}
		return errorOf(answer.Status, text)
	}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		fmt.Fprintln(c.OutOrStdout(), plain.Text(lines.Text()))
	}
	return lines.Err()
}
