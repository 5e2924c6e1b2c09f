package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/command"
	"perch/gateway/owner/admin"
	"perch/limit"
	"perch/store/archive"
)

func restoreCommand() *cobra.Command {
	r, restart := &target{}, false
	c := r.register(&cobra.Command{
		Use:     "restore FILE",
		Short:   "Check a backup, and replace the data of the appliance by it at the next start",
		Example: "perch restore perch.tar --restart",
		RunE:    func(c *cobra.Command, args []string) error { return r.restore(c, args[0], restart) },
	})
	c.Flags().BoolVar(&restart, "restart", false, "restart the appliance at once to apply the backup")
	return c
}

// restore sends the backup in the file name, or on standard input if name is "-", to the running appliance,
// which applies it at its next start. If no appliance runs, restore writes the backup into the data
// directory directly.
func (r *target) restore(c *cobra.Command, name string, restart bool) error {
	file, size := os.Stdin, int64(0)
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return fmt.Errorf("read the backup: %w", err)
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil {
			size = info.Size()
		}
	}
	a, running, err := r.running(c.Context())
	if err != nil {
		return err
	}
	progress := command.NewProgress(c.ErrOrStderr(), size)
	if running {
		staged, err := a.sendBackup(c.Context(), progress.Reader(file), restart)
		progress.Finish()
		if err != nil {
			return err
		}
		return r.print(c, staged, func(out io.Writer) { writeStaged(out, staged) })
	}
	m, previous, err := datadir.Archive(config.Data(r.data), version, slog.Default()).Restore(c.Context(), progress.Reader(file))
	progress.Finish()
	if err != nil {
		return err
	}
	restored := struct {
		archive.Manifest
		Kept string `json:"kept,omitempty"` // path where the previous database is kept; empty if there was no database
	}{m, previous}
	return r.print(c, restored, func(out io.Writer) {
		fmt.Fprintf(out, "restored: %s\n", m)
		if previous != "" {
			fmt.Fprintf(out, "the previous database is %s\n", previous)
		}
	})
}

// sendBackup sends a backup to the running appliance, which checks the backup and keeps it until the
// next start.
func (c *client) sendBackup(ctx context.Context, file io.Reader, restart bool) (staged admin.Restored, err error) {
	path := "/api/v1/restore"
	if restart {
		path += "?restart=true"
	}
	response, err := c.stream(ctx, http.MethodPost, path, io.NopCloser(file))
	if err != nil {
		return staged, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, limit.Answer)).Decode(&staged); err != nil {
		return staged, fmt.Errorf("decode the response of the appliance: %w", err)
	}
	return staged, nil
}

// writeStaged prints the description of a backup that the appliance will restore at its next start.
func writeStaged(out io.Writer, s admin.Restored) {
	fmt.Fprintf(out, "checked and staged: made %s by Perch %s on appliance %s\n%s", s.Created.Local().Format(time.DateTime), s.Perch,
		s.Appliance, s.Next)
	if !s.Restarting {
		fmt.Fprint(out, ": sudo systemctl restart perch (perch restore --restart restarts by itself)")
	}
	fmt.Fprintln(out)
}
