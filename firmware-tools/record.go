package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perch/command"
)

// recordFlags are the options of the command record.
type recordFlags struct {
	apiClient
	out string // path of the file to write; empty for the standard output
}

// recordCommand returns the command perch-tools robot record.
func recordCommand() *cobra.Command {
	f := &recordFlags{}
	c := &cobra.Command{
		Use:     "record ROBOT",
		Short:   "Write a transcript of a robot's session, with secrets blanked",
		Example: "perch-tools robot record kitchen --out kitchen.txtar",
		RunE: func(c *cobra.Command, args []string) error {
			robot, err := robotNamed(args[0])
			if err != nil {
				return command.Usagef("%w", err)
			}
			return f.record(c.Context(), robot, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&f.out, "out", "", "`FILE` to write to, instead of the terminal")
	f.register(c)
	return c
}

// record writes the transcript of a robot's session as it happens. It returns nil when the session
// ends or the command is interrupted.
func (f *recordFlags) record(ctx context.Context, robot string, stdout io.Writer) error {
	request, err := f.request(ctx, http.MethodGet, nil, nil, "devices", robot, "record")
	if err != nil {
		return err
	}
	response, err := doRequest(request, startTimeout)
	if err != nil && ctx.Err() != nil {
		return nil // interrupted before the first line
	}
	if err != nil {
		return err
	}
	transcript := response.Body
	defer transcript.Close()
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") {
		return fmt.Errorf("the appliance responded with %s, but without a transcript", response.Status)
	}
	if f.out == "" {
		return copyUntil(ctx, plainWriter{stdout}, transcript)
	}
	// Only this user may read the file, because conversations are private.
	file, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("open the transcript: %w", err)
	}
	return errors.Join(copyUntil(ctx, file, transcript), file.Close())
}

// startTimeout bounds the wait for the start of the transcript. The duration of the transcript is
// not limited.
const startTimeout = 10 * time.Second

// copyUntil copies a stream until the stream ends or ctx is done. In both cases it returns nil.
func copyUntil(ctx context.Context, to io.Writer, from io.Reader) error {
	if _, err := io.Copy(to, from); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the recording broke off: %w", err)
	}
	return nil
}

// plainWriter removes the control characters of ASCII, which a robot may have sent, except tabs and
// newlines, before it writes to a terminal. It checks single bytes, because a write may end in the
// middle of a character.
type plainWriter struct{ w io.Writer }

// Write implements io.Writer.
func (p plainWriter) Write(text []byte) (int, error) {
	plainText := slices.DeleteFunc(slices.Clone(text), func(c byte) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f })
	if _, err := p.w.Write(plainText); err != nil {
		return 0, err
	}
	return len(text), nil
}
