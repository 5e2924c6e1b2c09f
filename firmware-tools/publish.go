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

// publishFlags are the options of the command publish.
type publishFlags struct {
	apiClient
	boards    []string
	signature string // base64; empty if the appliance requires none
	percent   int    // share of the robots that are offered the image
	hours     string // times of day, FROM-TO; empty for all day
	auto      bool   // start a rollout
	json      bool
}

// rollout is the body of the request to the admin API that starts a rollout.
type rollout struct {
	Boards  []string `json:"boards"`
	Percent int      `json:"percent"`
	Hours   string   `json:"hours,omitempty"` // times of day, FROM-TO; empty for all day
	Auto    bool     `json:"auto"`
}

// jsonPublished is the JSON output about a published image.
type jsonPublished struct {
	Project string   `json:"project"`
	Version string   `json:"version"`
	Boards  []string `json:"boards"`
	SHA256  string   `json:"sha256"`
	Percent int      `json:"percent"` // share of the robots that are offered the image; 0 without a rollout
}

// publishCommand returns the command perch-tools firmware publish.
func publishCommand() *cobra.Command {
	f := &publishFlags{}
	c := &cobra.Command{
		Use:     "publish FILE.bin",
		Short:   "Put a firmware image into an appliance's catalogue",
		Example: "perch-tools firmware publish --board m5stack-stackchan stack-chan.bin --auto --percent 10 --hours 02:00-05:00",
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(f.boards) == 0:
				return command.Usagef("--board is required: an image does not name its board, and does not run on another board")
			case !f.auto && (f.hours != "" || f.percent != 100):
				return command.Usagef("--percent and --hours go with --auto")
			}
			return f.publish(c.Context(), args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.register(c)
	s := c.Flags()
	s.StringArrayVar(&f.boards, "board", nil, "`BOARD` that the image was built for, as listed by perch robot list; repeatable")
	s.StringVar(&f.signature, "signature", "", "ed25519 signature of the image's SHA-256 in `BASE64`, if the appliance requires one")
	s.BoolVar(&f.auto, "auto", false, "start a rollout: offer the image to robots at their check-ins")
	s.IntVar(&f.percent, "percent", 100, "`PERCENT` of the robots that are offered the image, with --auto")
	s.StringVar(&f.hours, "hours", "", "time of day `FROM-TO` in which the image is offered, such as 02:00-05:00, with --auto")
	s.BoolVar(&f.json, "json", false, "print JSON")
	return c
}

// publish uploads an image and, with --auto, starts its rollout.
func (f *publishFlags) publish(ctx context.Context, file string, stdout, stderr io.Writer) error {
	i, err := readImage(file) // check the image before the upload
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
	result := jsonPublished{Project: i.App.Project, Version: i.App.Version, Boards: f.boards, SHA256: sha256}
	if !f.json {
		fmt.Fprintf(stdout, "published %s %s for %s\nsha256 %s\n", result.Project, result.Version, strings.Join(f.boards, ", "), sha256)
	}
	if f.auto {
		plan := rollout{Boards: f.boards, Percent: f.percent, Hours: f.hours, Auto: true}
		if err := f.post(ctx, plan, "firmware", sha256, "rollout"); err != nil {
			return fmt.Errorf("the image is published, but the rollout did not start: %w", err)
		}
		result.Percent = f.percent
	}
	switch {
	case f.json:
		return command.WriteJSON(stdout, result)
	case f.auto:
		fmt.Fprintf(stdout, "rolled out to %d %% of these robots, from their second check-in on\n", f.percent)
	default:
		fmt.Fprintln(stdout, "this did not start a rollout: start one with --auto, or upgrade robots by hand")
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
	request.Header.Set("Expect", "100-continue") // lets the appliance reject the request before the upload
	err = send(request)
	progress.Finish()
	return err
}
