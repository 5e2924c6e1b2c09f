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
	r, again := &target{}, false
	c := r.register(&cobra.Command{
		Use:     "restore FILE",
		Short:   "Check a backup and put it in the place of what the appliance knows, at its next start",
		Example: "perch restore perch.tar --restart",
		RunE:    func(c *cobra.Command, args []string) error { return r.restore(c, args[0], again) },
	})
	c.Flags().BoolVar(&again, "restart", false, "have the appliance restart at once to apply it")
	return c
}

// restore sends a backup to the running appliance, or puts it in place at once if none runs.
func (r *target) restore(c *cobra.Command, name string, again bool) error {
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
		staged, err := a.sendBackup(c.Context(), progress.Reader(file), again)
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
		Kept string `json:"kept,omitempty"` // the previous database
	}{m, previous}
	return r.print(c, restored, func(out io.Writer) {
		fmt.Fprintf(out, "restored: %s\n", m)
		if previous != "" {
			fmt.Fprintf(out, "the database of before is %s\n", previous)
		}
	})
}

func (c *client) sendBackup(ctx context.Context, file io.Reader, restart bool) (staged admin.Restored, err error) {
	path := "/api/v1/restore"
	if restart {
		path += "?restart=true"
	}
	answer, err := c.exchange(ctx, http.MethodPost, path, io.NopCloser(file))
	if err != nil {
		return staged, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(io.LimitReader(answer.Body, limit.Answer)).Decode(&staged); err != nil {
		return staged, fmt.Errorf("the answer is not the appliance's: %w", err)
	}
	return staged, nil
}

func writeStaged(out io.Writer, s admin.Restored) {
	fmt.Fprintf(out, "checked and staged: made %s by Perch %s on appliance %s\n%s", s.Created.Local().Format(time.DateTime), s.Perch,
		s.Appliance, s.Next)
	if !s.Restarting {
		fmt.Fprint(out, ": perch restore --restart does both, systemctl restart perch does it now")
	}
	fmt.Fprintln(out)
}
