package music

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"perch/child"
	"perch/limit"
	"perch/voice"
	"perch/voice/program"
)

const (
	nobody           = 65534      // user and group of programs that may do nothing
	maxNested        = 3          // play lists that name each other
	maxAlloc         = "67108864" // largest block of memory that ffmpeg allocates, in bytes, as for the picture of a cover
	networkProtocols = "http,https,tcp,tls,crypto,httpproxy"
)

// decode decodes a file from an offset, or a URL, and calls out as Playing.Play does.
func (d *Decoder) decode(ctx context.Context, entry string, from time.Duration, out func([]int16) error) error {
	if IsURL(entry) {
		return d.stream(ctx, entry, maxNested, out)
	}
	args := []string{"-protocol_whitelist", "file"}
	if from > 0 {
		args = append(args, "-ss", strconv.FormatFloat(from.Seconds(), 'f', 3, 64))
	}
	return d.run(ctx, false, append(args, "-i", "file:"+entry), nil, func() {}, out)
}

// stream decodes what a URL leads to: sound, or a play list, whose entries are tried one after the other until one
// has sound. nested is how many more play lists may follow.
func (d *Decoder) stream(ctx context.Context, address string, nested int, out func([]int16) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("its address in music is not a URL")
	}
	request.Header.Set("User-Agent", "Perch")
	response, err := d.client.Do(request)
	if err != nil && strings.Contains(err.Error(), `"ICY 200 OK"`) { // an old server, whose HTTP only ffmpeg understands
		return d.fetch(ctx, request.URL, out)
	}
	if err != nil {
		return unreachable(ctx, request.URL.Host, err)
	}
	defer func() { _ = response.Body.Close() }()
	at := response.Request.URL
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d %s; %s", at.Host, response.StatusCode, http.StatusText(response.StatusCode), cureAddress)
	}
	sound := bufio.NewReaderSize(&watched{response.Body, d.patience, ctx, cancel}, 4<<10)
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	head, err := sound.Peek(512) // other errors are returned by the next read
	if errors.Is(err, errStalled) {
		return errStalled
	}
	switch head = bytes.ToLower(bytes.TrimLeft(head, "\ufeff \t\r\n")); {
	case isListType(kind), bytes.HasPrefix(head, []byte("#extm3u")), bytes.HasPrefix(head, []byte("[playlist]")), kind == "text/plain" && isPlaylist(at.Path):
		text, err := io.ReadAll(io.LimitReader(sound, limit.File))
		if err != nil {
			return unreachable(ctx, at.Host, err)
		}
		return d.list(ctx, string(text), at, nested, out)
	case kind == "text/html", kind == "application/xhtml+xml", bytes.HasPrefix(head, []byte("<")):
		return fmt.Errorf("%s sends a web page, and not sound; %s", at.Host, cureAddress)
	}
	err = d.run(ctx, true, []string{"-protocol_whitelist", "pipe", "-i", "pipe:0"}, sound, func() { cancel(nil) }, out)
	if err == nil && response.ContentLength >= 0 {
		return errEnded // a station's stream has no length
	}
	return err
}

// isListType reports whether a media type means a play list.
func isListType(kind string) bool {
	switch kind {
	case "audio/x-mpegurl", "audio/mpegurl", "application/x-mpegurl", "application/mpegurl", "application/vnd.apple.mpegurl", "audio/x-scpls", "application/pls+xml":
		return true
	}
	return false
}

// list decodes the first station of a play list that has sound, the files of a play list one after the other, or the
// pieces of a stream.
func (d *Decoder) list(ctx context.Context, text string, at *url.URL, nested int, out func([]int16) error) error {
	if strings.Contains(text, "#EXT-X-") {
		err := d.fetch(ctx, at, out)
		if err == nil && strings.Contains(text, "#EXT-X-ENDLIST") {
			return errEnded
		}
		return err
	}
	if nested == 0 {
		return fmt.Errorf("the play lists of %s name only each other; %s", at.Host, cureAddress)
	}
	entries, err := listed(text, at.String())
	if err != nil {
		return err
	}
	var first error
	ended := false // whether a file was played
	for i, entry := range entries {
		if i == limit.Named && !ended {
			break
		}
		sounded := false
		err := d.stream(ctx, entry, nested-1, func(pcm []int16) error {
			sounded = true
			return out(pcm)
		})
		switch {
		case errors.Is(err, errEnded):
			ended = true
			continue
		case err == nil || sounded || ctx.Err() != nil:
			return err
		case first == nil:
			first = err
		}
	}
	if ended {
		return errEnded
	}
	return first
}

// fetch decodes a URL that ffmpeg itself fetches. It can fetch nothing but http and https.
func (d *Decoder) fetch(ctx context.Context, at *url.URL, out func([]int16) error) error {
	timeout := strconv.FormatInt(d.patience.Microseconds(), 10)
	err := d.run(ctx, true, []string{"-protocol_whitelist", networkProtocols, "-rw_timeout", timeout, "-i", at.String()}, nil, func() {}, out)
	var fault *program.Fault
	if errors.As(err, &fault) { // what ffmpeg says may contain the URL, with a password
		return fmt.Errorf("ffmpeg finds no sound at %s; %s", at.Host, cureAddress)
	}
	return err
}

// unreachable returns the error for a station that cannot be reached. It leaves out the URL, which may hold a
// password.
func unreachable(ctx context.Context, host string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if strings.Contains(err.Error(), "malformed") { // the error repeats what the station has sent, and a model may read it
		err = errors.New("it does not answer in HTTP")
	}
	return fmt.Errorf("%s cannot be reached: %w; check its address in music, and the network", host, err)
}

// Errors of decode.
var (
	// errStalled is the error if no sound comes.
	errStalled = errors.New("no sound comes")
	// errBroken is the error if ffmpeg fails after it has decoded some sound.
	errBroken = errors.New("the sound has broken off")
	// errEnded is the error at the end of a file behind a URL.
	errEnded = errors.New("the file has ended")
)

// watched is the body of a response, which must send something within patience.
type watched struct {
	io.Reader
	patience time.Duration
	ctx      context.Context // of the request
	cancel   context.CancelCauseFunc
}

// Read implements io.Reader. It returns errStalled if nothing comes.
func (w *watched) Read(p []byte) (int, error) {
	timer := time.AfterFunc(w.patience, func() { w.cancel(errStalled) })
	defer timer.Stop()
	n, err := w.Reader.Read(p)
	if err != nil && errors.Is(context.Cause(w.ctx), errStalled) {
		err = errStalled
	}
	return n, err
}

// run runs ffmpeg with an input and calls out with its sound. It returns when ffmpeg has ended. If ctx ends, out
// fails, or no sound comes for patience, run kills ffmpeg. closeInput makes a read of stdin return. If fromNetwork is set,
// strangers may have made the input: root runs ffmpeg as the user nobody then.
func (d *Decoder) run(ctx context.Context, fromNetwork bool, input []string, stdin io.Reader, closeInput func(), out func([]int16) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	args := slices.Concat(d.command[1:], []string{"-nostdin", "-hide_banner", "-loglevel", "error", "-max_alloc", maxAlloc}, input,
		[]string{"-map", "0:a:0", "-ac", "1", "-ar", strconv.Itoa(voice.SpeakerRate), "-f", "s16le", "pipe:1"})
	cmd := exec.CommandContext(ctx, d.command[0], args...)
	cmd.Env = child.Environ(os.Environ())
	cmd.Stdin = stdin
	if fromNetwork && os.Geteuid() == 0 { // as in sudo perch doctor
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	stdout, stderr, err := program.Start(cmd)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return ErrNoFFmpeg
	case err != nil:
		return fmt.Errorf("start ffmpeg: %w", err)
	}
	timer := time.AfterFunc(d.patience, func() { cancel(errStalled) })
	defer timer.Stop()
	sounded, outErr := read(stdout, func(pcm []int16) error {
		timer.Stop() // the time that out takes does not count
		defer timer.Reset(d.patience)
		return out(pcm)
	})
	cause := context.Cause(ctx)
	if outErr != nil || cause != nil {
		cancel(nil)
		closeInput()
	}
	exitErr := cmd.Wait()
	switch {
	case outErr != nil:
		return outErr
	case cause != nil:
		return cause
	case errors.Is(exitErr, errStalled):
		return errStalled
	case sounded && exitErr == nil:
		return nil
	case sounded:
		return errBroken
	}
	return &program.Fault{Name: "ffmpeg", Stderr: stderr.String(), Err: errNotSound}
}

// Errors of Play.
var (
	// ErrNoFFmpeg is the error if ffmpeg is not installed.
	ErrNoFFmpeg = errors.New("the program ffmpeg is not installed; on Debian, apt install ffmpeg installs it")
	errNotSound = errors.New("ffmpeg finds no sound in it; check its source in music")
)

// read reads 16-bit samples to their end, and calls out with them.
func read(r io.Reader, out func([]int16) error) (sounded bool, err error) {
	buffer := make([]byte, 2*voice.SpeakerFrame)
	pcm := make([]int16, voice.SpeakerFrame)
	for {
		n, err := io.ReadFull(r, buffer)
		for i := range n / 2 {
			pcm[i] = int16(binary.LittleEndian.Uint16(buffer[2*i:]))
		}
		if n > 1 {
			sounded = true
			if err := out(pcm[:n/2]); err != nil {
				return true, err
			}
		}
		if err != nil {
			return sounded, nil // the sound has ended; how ffmpeg has ended says why
		}
	}
}
