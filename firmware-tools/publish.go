package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"perch/ota/espimage"
)

// publishFlags are the options of perch-tools publish.
type publishFlags struct {
	reach
	file      string
	boards    []string
	signature string
	rollout   rollout
	rollOut   bool
}

// rollout is the body of that name of the admin API.
type rollout struct {
	Boards  []string `json:"boards"`
	Percent int      `json:"percent"`
	Hours   string   `json:"hours,omitempty"`
	Auto    bool     `json:"auto"`
}

// publish puts a firmware image into an appliance's catalogue, and begins its
// rollout where it is told to.
func publish(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parsePublish(args, stdout)
	if err != nil {
		return err
	}
	i, err := readImage(f.file) // a bad one need not go over the network
	if err != nil {
		return err
	}
	if err := f.upload(ctx, i, stderr); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "published %s %s for %s\nsha256 %x\n", i.App.Project, i.App.Version, strings.Join(f.boards, ", "), i.SHA256)
	if !f.rollOut {
		fmt.Fprintln(stdout, "no robot is offered it yet: --auto begins a rollout, or upgrade one by hand")
		return nil
	}
	body, err := json.Marshal(f.rollout)
	if err != nil {
		return fmt.Errorf("encode the rollout: %w", err)
	}
	request, err := f.request(ctx, http.MethodPost, bytes.NewReader(body), nil, "firmware", hex.EncodeToString(i.SHA256[:]), "rollout")
	if err != nil {
		return err
	}
	if err := send(request); err != nil {
		return fmt.Errorf("it is published, but not rolled out: %w", err)
	}
	fmt.Fprintf(stdout, "rolled out to %d %% of these robots, from their second check-in on\n", f.rollout.Percent)
	return nil
}

func parsePublish(args []string, stdout io.Writer) (*publishFlags, error) {
	f := &publishFlags{}
	s := flag.NewFlagSet("perch-tools publish", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	f.register(s)
	s.Func("board", "`BOARD` that the image is for, as perch devices shows it; repeatable", func(b string) error {
		f.boards = append(f.boards, b)
		return nil
	})
	s.StringVar(&f.signature, "signature", "", "ed25519 signature of the image's SHA-256, in `BASE64`, where the appliance asks for one")
	s.BoolVar(&f.rollout.Auto, "auto", false, "offer it to robots by itself")
	s.IntVar(&f.rollout.Percent, "percent", 100, "`PERCENT` of the robots, with --auto")
	s.StringVar(&f.rollout.Hours, "hours", "", "`FROM-TO` in which it is offered, as in 02:00-05:00, with --auto")
	files, err := parseAround(s, args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, helped(s, stdout, "FILE.bin")
	}
	f.rollOut = f.rollout.Auto
	switch {
	case err != nil:
	case len(files) != 1:
		err = fmt.Errorf("it takes one file, not %d", len(files))
	case len(f.boards) == 0:
		err = errors.New("--board must name what the image is for: an image itself does not tell, and on another board it would not run")
	case !f.rollOut && (f.rollout.Hours != "" || f.rollout.Percent != 100):
		err = errors.New("--percent and --hours go with --auto")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	f.file, f.rollout.Boards = files[0], f.boards
	return f, nil
}

func (f *publishFlags) upload(ctx context.Context, i espimage.Image, stderr io.Writer) error {
	file, err := os.Open(f.file)
	if err != nil {
		return fmt.Errorf("open the image: %w", err)
	}
	defer file.Close()
	query := url.Values{"board": f.boards, "sha256": {hex.EncodeToString(i.SHA256[:])}}
	if f.signature != "" {
		query.Set("signature", f.signature)
	}
	b := &bar{from: io.LimitReader(file, i.Size), size: i.Size, to: stderr, shown: -1, live: isTerminal(stderr)}
	request, err := f.request(ctx, http.MethodPost, b, query, "firmware")
	if err != nil {
		return err
	}
	request.ContentLength = i.Size
	request.Header.Set("Content-Type", "application/octet-stream")
	request.Header.Set("Expect", "100-continue") // a refusal comes before the image goes
	err = send(request)
	b.end()
	return err
}

// judgeWithin is how long an appliance may take to check an image that it has,
// on a slow card.
const judgeWithin = time.Minute

// send sends a request and returns the error that it is answered with.
func send(request *http.Request) error {
	client := http.Client{Transport: &http.Transport{ResponseHeaderTimeout: judgeWithin, ExpectContinueTimeout: 2 * time.Second, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the appliance does not answer: %w", errors.Unwrap(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode < 300 {
		return nil
	}
	if err := refusedWith(answer); err != nil {
		return err
	}
	return fmt.Errorf("the appliance answered %s", answer.Status)
}

// bar shows how much of a file is done, on a line of its own.
type bar struct {
	from  io.Reader
	size  int64
	to    io.Writer
	live  bool // a person looks at it
	read  int64
	shown int // percent
}

func (b *bar) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.at(b.read + int64(n))
	return n, err
}

// at shows that so many bytes are done.
func (b *bar) at(read int64) {
	b.read = read
	if percent := int(b.read * 100 / max(b.size, 1)); b.live && percent != b.shown {
		b.shown = percent
		const width = 30
		full := percent * width / 100
		fmt.Fprintf(b.to, "\r[%s%s] %3d %% of %.1f MB", strings.Repeat("#", full), strings.Repeat(".", width-full), percent, float64(b.size)/1e6)
	}
}

func (b *bar) end() {
	if b.live && b.shown >= 0 {
		fmt.Fprintln(b.to)
	}
}

func isTerminal(w io.Writer) bool {
	file, isFile := w.(*os.File)
	if !isFile {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
