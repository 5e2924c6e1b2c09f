package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"perch/command"
)

type publishFlags struct {
	apiClient
	boards    []string
	signature string
	percent   int
	hours     string
	auto      bool
	json      bool
}

// rollout is the body of that name of the admin API.
type rollout struct {
	Boards  []string `json:"boards"`
	Percent int      `json:"percent"`
	Hours   string   `json:"hours,omitempty"`
	Auto    bool     `json:"auto"`
}

// published is the output about an image in the catalogue.
type published struct {
	Project string   `json:"project"`
	Version string   `json:"version"`
	Boards  []string `json:"boards"`
	SHA256  string   `json:"sha256"`
	Percent int      `json:"percent"` // share of the robots that are offered it, 0 to 100
}

func publishCommand() *cobra.Command {
	f := &publishFlags{}
	c := &cobra.Command{
		Use:     "publish FILE.bin",
		Short:   "Put a firmware image into an appliance's catalogue",
		Example: "perch-tools firmware publish --board m5stack-stackchan stack-chan.bin --auto --percent 10 --hours 02:00-05:00",
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(f.boards) == 0:
				return command.Usagef("--board must name the board of the image: the image itself does not, and on another board it would not run")
			case !f.auto && (f.hours != "" || f.percent != 100):
				return command.Usagef("--percent and --hours go with --auto")
			}
			return f.publish(c.Context(), args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.register(c)
	s := c.Flags()
	s.StringArrayVar(&f.boards, "board", nil, "`BOARD` that the image is for, as perch robot list shows it; repeatable")
	s.StringVar(&f.signature, "signature", "", "ed25519 signature of the image's SHA-256, in `BASE64`, where the appliance asks for one")
	s.BoolVar(&f.auto, "auto", false, "begin a rollout: robots are offered the image at their check-ins")
	s.IntVar(&f.percent, "percent", 100, "`PERCENT` of the robots, with --auto")
	s.StringVar(&f.hours, "hours", "", "`FROM-TO` in which it is offered, as in 02:00-05:00, with --auto")
	s.BoolVar(&f.json, "json", false, "print JSON")
	return c
}

// publish uploads an image, and starts its rollout if requested.
func (f *publishFlags) publish(ctx context.Context, file string, stdout, stderr io.Writer) error {
	i, err := readImage(file) // before the upload
	if err != nil {
		return err
	}
	sha256 := hex.EncodeToString(i.SHA256[:])
	query := url.Values{"board": f.boards, "sha256": {sha256}}
	if f.signature != "" {
		query.Set("signature", f.signature)
	}
	if err := f.upload(ctx, file, i.Size, query, stderr, "firmware"); err != nil {
		return err
	}
	result := published{Project: i.App.Project, Version: i.App.Version, Boards: f.boards, SHA256: sha256}
	if !f.json {
		fmt.Fprintf(stdout, "published %s %s for %s\nsha256 %s\n", result.Project, result.Version, strings.Join(f.boards, ", "), sha256)
	}
	if f.auto {
		plan := rollout{Boards: f.boards, Percent: f.percent, Hours: f.hours, Auto: true}
		if err := f.post(ctx, plan, "firmware", sha256, "rollout"); err != nil {
			return fmt.Errorf("it is published, but not rolled out: %w", err)
		}
		result.Percent = f.percent
	}
	switch {
	case f.json:
		return command.WriteJSON(stdout, result)
	case f.auto:
		fmt.Fprintf(stdout, "rolled out to %d %% of these robots, from their second check-in on\n", f.percent)
	default:
		fmt.Fprintln(stdout, "no robot is offered it yet: --auto begins a rollout, or upgrade one by hand")
	}
	return nil
}

// upload sends the first size bytes of a file to a path of the admin API.
func (r *apiClient) upload(ctx context.Context, name string, size int64, query url.Values, stderr io.Writer, path ...string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open the file: %w", err)
	}
	defer file.Close()
	progress := command.NewProgress(stderr, size)
	request, err := r.request(ctx, http.MethodPost, progress.Reader(io.LimitReader(file, size)), query, path...)
	if err != nil {
		return err
	}
	request.ContentLength = size
	request.Header.Set("Content-Type", "application/octet-stream")
	request.Header.Set("Expect", "100-continue") // for an error before the upload
	err = send(request)
	progress.Finish()
	return err
}
