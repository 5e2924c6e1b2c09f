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

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
	"perch/gateway/admin"
)

// restore is the command. A running appliance is given the backup; where none
// runs, it is swapped in at once.
func restore(ctx context.Context, args []string, out io.Writer) error {
	var r target
	f := newFlags("restore")
	r.register(f)
	again := f.Bool("restart", false, "have the appliance restart at once to apply it")
	rest, err := parse(f, args, 1, 1)
	if err != nil {
		return err
	}
	file := os.Stdin
	if rest[0] != "-" {
		if file, err = os.Open(rest[0]); err != nil {
			return fmt.Errorf("read the backup: %w", err)
		}
		defer file.Close()
	}
	c, running, err := r.running(ctx)
	if err != nil {
		return err
	}
	if running {
		return c.sendBackup(ctx, file, *again, out)
	}
	m, kept, err := appliance.Directory(config.Data(r.data), version, slog.Default()).Restore(ctx, file)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "restored: %s\n", m)
	if kept != "" {
		fmt.Fprintf(out, "the database of before is %s\n", kept)
	}
	return nil
}

func (c *client) sendBackup(ctx context.Context, file io.Reader, restart bool, out io.Writer) error {
	path := "/api/v1/restore"
	if restart {
		path += "?restart=true"
	}
	answer, err := c.exchange(ctx, http.MethodPost, path, io.NopCloser(file))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var told admin.Restored
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostAnswer)).Decode(&told); err != nil {
		return fmt.Errorf("the answer is not the appliance's: %w", err)
	}
	fmt.Fprintf(out, "checked and staged: made %s by Perch %s on appliance %s\n%s", told.Created.Local().Format(time.DateTime), told.Perch,
		told.Appliance, told.Next)
	if !told.Restarting {
		fmt.Fprint(out, ": perch restore --restart does both, systemctl restart perch does it now")
	}
	fmt.Fprintln(out)
	return nil
}
