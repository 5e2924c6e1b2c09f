package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// recordFlags are the options of perch-tools record.
type recordFlags struct {
	reach
	robot string // its id, or its name
	out   string
}

// record writes the transcript of a robot's session as it happens, until the
// session ends or the command is interrupted.
func record(ctx context.Context, args []string, stdout, _ io.Writer) error {
	f, err := parseRecord(args, stdout)
	if err != nil {
		return err
	}
	request, err := f.request(ctx)
	if err != nil {
		return err
	}
	transcript, err := openStream(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil // it was told to stop
		}
		return err
	}
	defer transcript.Close()
	if f.out == "" {
		return copyUntil(ctx, plain{stdout}, transcript)
	}
	// What was said to a robot is for its owner.
	file, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("open the transcript: %w", err)
	}
	return errors.Join(copyUntil(ctx, file, transcript), file.Close())
}

func parseRecord(args []string, stdout io.Writer) (*recordFlags, error) {
	f := &recordFlags{}
	s := flag.NewFlagSet("perch-tools record", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	s.StringVar(&f.out, "out", "", "`FILE` to write to, in place of the terminal")
	f.register(s)
	robots, err := parseAround(s, args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, helped(s, stdout, "ROBOT")
	}
	if err == nil && len(robots) != 1 {
		err = fmt.Errorf("it takes one robot, not %d", len(robots))
	}
	if err == nil {
		f.robot, err = robotNamed(robots[0])
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return f, nil
}

// request asks for the transcript.
func (f *recordFlags) request(ctx context.Context) (*http.Request, error) {
	return f.reach.request(ctx, http.MethodGet, nil, nil, "devices", f.robot, "record")
}

// beginWithin is how long an appliance may take to begin the transcript. The
// transcript itself has no end of its own.
const beginWithin = 10 * time.Second

// openStream sends the request and returns the answer's body.
func openStream(r *http.Request) (io.ReadCloser, error) {
	client := http.Client{Transport: &http.Transport{ResponseHeaderTimeout: beginWithin, DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the appliance does not answer: %w", errors.Unwrap(err))
	}
	if answer.StatusCode == http.StatusOK && strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	if err := refusedWith(answer); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the appliance answered %s and no transcript", answer.Status)
}

// copyUntil copies until the transcript ends or ctx does; either is the end of
// a recording.
func copyUntil(ctx context.Context, to io.Writer, from io.Reader) error {
	if _, err := io.Copy(to, from); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the recording broke off: %w", err)
	}
	return nil
}

// plain is a terminal that is given lines and no control sequences, whatever a
// robot has sent. In JSON there are none. It looks at bytes, for a write may
// end within a character.
type plain struct{ w io.Writer }

func (p plain) Write(text []byte) (int, error) {
	kept := slices.DeleteFunc(slices.Clone(text), func(c byte) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f })
	if _, err := p.w.Write(kept); err != nil {
		return 0, err
	}
	return len(text), nil
}
