package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/command"
	"perch/limit"
	"perch/store/archive"
)

func backupCommand() *cobra.Command {
	r, force := &target{}, false
	c := r.register(&cobra.Command{
		Use:   "backup FILE",
		Short: "Write what the appliance knows into one file, while it runs; - is standard output",
		Example: `perch backup perch.tar
			perch backup - | ssh nas 'cat > perch.tar'`,
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "-" && r.json {
				return command.Usagef("--json goes with a file")
			}
			return r.backup(c, args[0], force)
		},
	})
	c.Flags().BoolVar(&force, "force", false, "replace FILE if it exists")
	return c
}

// backup asks the running appliance, or reads the data directory itself if none runs.
func (r *target) backup(c *cobra.Command, file string, force bool) error {
	write, err := r.backupSource(c.Context(), c.ErrOrStderr())
	if err != nil {
		return err
	}
	if file == "-" {
		_, err := write(c.OutOrStdout())
		return err
	}
	m, err := archive.WriteFile(file, force, write)
	if err != nil {
		return err
	}
	return r.print(c, m, func(out io.Writer) { fmt.Fprintf(out, "%s: %s\n", file, m) })
}

// backupSource returns a function that writes a backup and returns its manifest.
func (r *target) backupSource(ctx context.Context, stderr io.Writer) (func(io.Writer) (archive.Manifest, error), error) {
	c, running, err := r.running(ctx)
	if err != nil {
		return nil, err
	}
	if running {
		return func(w io.Writer) (archive.Manifest, error) { return c.fetchBackup(ctx, w, stderr) }, nil
	}
	data := config.Data(r.data)
	path := archive.DatabasePath(data)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("no appliance runs here, and its data cannot be read (%w); name its data directory with --data, "+
			"or an appliance elsewhere with --url", err)
	}
	return func(w io.Writer) (archive.Manifest, error) {
		p, err := datadir.Archive(data, version, slog.Default()).Stopped(ctx)
		if err != nil {
			return archive.Manifest{}, err
		}
		defer p.Close()
		progress := command.NewProgress(stderr, p.Size())
		defer progress.Finish()
		return p.Manifest, p.Write(ctx, io.MultiWriter(w, progress))
	}, nil
}

// fetchBackup has the running appliance make a backup, and checks it against its manifest.
func (c *client) fetchBackup(ctx context.Context, w, stderr io.Writer) (archive.Manifest, error) {
	answer, err := c.exchange(ctx, http.MethodGet, "/api/v1/backup", nil)
	if err != nil {
		return archive.Manifest{}, err
	}
	defer answer.Body.Close()
	progress := command.NewProgress(stderr, answer.ContentLength)
	defer progress.Finish()
	return archive.Receive(progress.Reader(answer.Body), datadir.Firmware(), w)
}

// exchange sends a request whose body or answer may be of any length, without a limit of time.
func (c *client) exchange(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	patient := *c.http
	patient.Timeout = 0
	answer, err := c.send(ctx, &patient, method, path, body, "")
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, limit.Answer)) // without it, the status is the message
		return nil, errors.Join(c.refusal(answer, text), answer.Body.Close())
	}
	return answer, nil
}
