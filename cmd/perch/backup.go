package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
	"perch/store/archive"
)

// backup is the command. It asks the running appliance, and reads the data
// directory itself where none runs.
func backup(ctx context.Context, args []string, out io.Writer) error {
	var r target
	f := newFlags("backup")
	r.register(f)
	force := f.Bool("force", false, "replace FILE where it is there")
	rest, err := parse(f, args, 1, 1)
	if err != nil {
		return err
	}
	write, err := r.backupSource(ctx)
	if err != nil {
		return err
	}
	if rest[0] == "-" {
		_, err := write(out)
		return err
	}
	m, err := archive.WriteFile(rest[0], *force, write)
	if err == nil {
		fmt.Fprintf(out, "%s: %s\n", rest[0], m)
	}
	return err
}

// backupSource is a function that writes a backup and returns its manifest.
func (r *target) backupSource(ctx context.Context) (func(io.Writer) (archive.Manifest, error), error) {
	c, running, err := r.running(ctx)
	if err != nil {
		return nil, err
	}
	if running {
		return func(w io.Writer) (archive.Manifest, error) { return c.fetchBackup(ctx, w) }, nil
	}
	data := config.Data(r.data)
	path := archive.DatabasePath(data)
	if _, err := os.Stat(path); err != nil {
		return nil,
			fmt.Errorf(
				"no appliance runs here, and its data cannot be read (%w); name its data directory with --data, or an appliance elsewhere with --url",
				err)
	}
	return func(w io.Writer) (archive.Manifest, error) {
		p, err := appliance.Directory(data, version, slog.Default()).Stopped(ctx)
		if err != nil {
			return archive.Manifest{}, err
		}
		defer p.Close()
		return p.Manifest, p.Write(ctx, w)
	}, nil
}

// fetchBackup has the running appliance make a backup. What arrives is checked
// against its own manifest.
func (c *client) fetchBackup(ctx context.Context, w io.Writer) (archive.Manifest, error) {
	answer, err := c.exchange(ctx, http.MethodGet, "/api/v1/backup", nil)
	if err != nil {
		return archive.Manifest{}, err
	}
	defer answer.Body.Close()
	return archive.Receive(answer.Body, w)
}

// exchange sends a request whose body or answer may be of any length, and takes
// as long as it takes.
func (c *client) exchange(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("the address %q cannot be used: %w", c.base, err)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	patient := *c.http
	patient.Timeout = 0
	answer, err := patient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the appliance does not answer: %w", errors.Unwrap(err))
	}
	if answer.StatusCode >= 300 {
		var text bytes.Buffer
		_, _ = io.Copy(&text, io.LimitReader(answer.Body, mostAnswer)) // without it the status is what is told
		return nil, errors.Join(errorOf(answer.Status, text.Bytes()), answer.Body.Close())
	}
	return answer, nil
}
