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
		Short: "Back up the data of the appliance into one file, while it runs; - is standard output",
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

// backup writes a backup from the running appliance into a file. If no appliance runs, it reads the data
// directory directly.
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
		p, err := datadir.Archive(data, version, slog.Default()).BackupStopped(ctx)
		if err != nil {
			return archive.Manifest{}, err
		}
		defer p.Close()
		progress := command.NewProgress(stderr, p.Size())
		defer progress.Finish()
		return p.Manifest, p.Write(ctx, io.MultiWriter(w, progress))
	}, nil
}

// fetchBackup writes a backup of the running appliance to w, and checks it against its manifest. It shows
// the progress on stderr.
func (c *client) fetchBackup(ctx context.Context, w, stderr io.Writer) (archive.Manifest, error) {
	response, err := c.stream(ctx, http.MethodGet, "/api/v1/backup", nil)
	if err != nil {
		return archive.Manifest{}, err
	}
	defer response.Body.Close()
	progress := command.NewProgress(stderr, response.ContentLength)
	defer progress.Finish()
	return archive.Receive(progress.Reader(response.Body), datadir.Firmware(), w)
}

// stream sends a request without a timeout, since its body or the response may have any length. It
// returns an error if the status of the response is not 2xx.
func (c *client) stream(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	withoutTimeout := *c.http
	withoutTimeout.Timeout = 0
	response, err := c.send(ctx, &withoutTimeout, method, path, body, "")
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, limit.Answer)) // without a text, responseError reports the status
		return nil, errors.Join(c.responseError(response, text), response.Body.Close())
	}
	return response, nil
}
