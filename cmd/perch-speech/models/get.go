package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"perch/store"
)

const (
	spareSpace  = 100 << 20        // bytes of the disk that a download leaves free
	maxSilence  = 30 * time.Second // how long a server may send nothing
	maxResumes  = 5                // how often one call of Get continues a download that was cut off
	resumePause = time.Second      // time before a download is continued
	maxLinkedTo = 10               // maximum number of requests for a file, including those after redirections
)

// Getter downloads models.
type Getter struct {
	Folder    Folder
	Transport http.RoundTripper // uses the proxy of the environment
	// Progress is called when the download of the file f begins or is continued. at is the number of bytes that are there
	// already. Progress returns a writer that receives all downloaded bytes, and a function that is called at the end.
	Progress func(f File, at int64) (received io.Writer, done func())
	pause    time.Duration // before a download is continued; resumePause if 0
}

// Get downloads the files of a model that are not in the folder yet, and continues downloads that were cut off. It puts
// a file in its place only if the file has the SHA-256 in the catalogue. It returns an error if the disk has not enough
// free space. It does nothing if a Debian package has installed the model.
func (g Getter) Get(ctx context.Context, m Model) error {
	if there, ok, err := g.Folder.find(m.Name); err != nil || ok && g.Folder.isPackaged(there) {
		return err
	}
	dir := filepath.Join(g.Folder.Own(), m.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the model: %w", err)
	}
	var missing []File
	var needed int64
	for _, f := range m.Files {
		if sum, err := sumOf(filepath.Join(dir, f.Name), f.Size); err == nil && sum == f.SHA256 {
			continue
		}
		missing = append(missing, f)
		needed += f.Size - sizeOf(filepath.Join(dir, f.Name+partEnd))
	}
	free, err := store.FreeSpace(dir)
	if err != nil {
		return err
	}
	if len(missing) > 0 && free < needed+spareSpace {
		return fmt.Errorf("the disk of %s has %d MB free, and the model needs %d MB and %d MB to spare; make room, or choose another folder with --models",
			g.Folder.Own(), free/1_000_000, needed/1_000_000, spareSpace/1_000_000)
	}
	for _, f := range missing {
		if err := g.getFile(ctx, dir, f); err != nil {
			return fmt.Errorf("get %s: %w", f.Name, err)
		}
	}
	if there, ok := recognize(g.Folder.Own(), m.Name); ok {
		return there.prepare()
	}
	return nil
}

// getFile downloads a file, or the rest of it, into a file that ends in partEnd, and renames that file when it is
// complete.
func (g Getter) getFile(ctx context.Context, dir string, f File) error {
	path := filepath.Join(dir, f.Name)
	part, err := os.OpenFile(path+partEnd, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	defer part.Close()
	if err := syscall.Flock(int(part.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.New("it is being downloaded already")
	}
	err = g.receive(ctx, part, f)
	var cut *cutOffError
	for resumes := 0; errors.As(err, &cut) && resumes < maxResumes && ctx.Err() == nil; resumes++ {
		select {
		case <-time.After(cmp.Or(g.pause, resumePause)):
		case <-ctx.Done():
		}
		err = g.receive(ctx, part, f)
	}
	if err != nil {
		return err
	}
	sum, err := sumOf(path+partEnd, f.Size)
	if err != nil {
		return err
	}
	if sum != f.SHA256 {
		return errors.Join(fmt.Errorf("%s sent another file than the one that was tried with Perch (its SHA-256 is %s instead of %s); nothing was kept",
			f.URL, sum, f.SHA256), os.Remove(path+partEnd))
	}
	if err := errors.Join(finish(part, path, f), part.Sync()); err != nil {
		return err
	}
	return errors.Join(os.Rename(path+partEnd, path), store.SyncDirectory(dir))
}

// finish appends the metadata to the downloaded file of a Piper voice, so that preparePiper need not copy the voice
// later. The settings of the voice have been downloaded before. finish does nothing for other files.
func finish(part *os.File, path string, f File) error {
	voice, isVoice := strings.CutSuffix(path, voiceEnd)
	if !isVoice || f.Name == detectorFile {
		return nil
	}
	s, err := readSettings(voice + settingsEnd)
	if err == nil {
		_, err = part.WriteAt(s.metadata(), f.Size)
	}
	return err
}

// cutOffError is the error of a download that can be continued.
type cutOffError struct{ cause error }

// Error returns a sentence.
func (e *cutOffError) Error() string {
	return fmt.Sprintf("the download was cut off (%v); the same command continues it", e.cause)
}

// Unwrap returns the cause.
func (e *cutOffError) Unwrap() error { return e.cause }

// receive downloads the bytes that are missing at the end of part. If the response was cut off, so that the download
// can be continued, the error is a *cutOffError.
func (g Getter) receive(ctx context.Context, part *os.File, f File) error {
	at := min(sizeOf(part.Name()), f.Size)
	if err := part.Truncate(at); err != nil || at == f.Size {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(maxSilence, cancel)
	defer silence.Stop()
	resp, err := g.ask(ctx, f, at)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		at = 0 // the server sends the whole file
		if err := part.Truncate(0); err != nil {
			return err
		}
	}
	received, done := g.Progress(f, at)
	defer done()
	to := io.MultiWriter(&fileAt{part, at}, received, poke(func() { silence.Reset(maxSilence) }))
	n, err := io.Copy(to, io.LimitReader(resp.Body, f.Size-at+1))
	switch {
	case at+n > f.Size:
		return errors.Join(fmt.Errorf("%s sends more than the %d bytes of the file; nothing was kept", f.URL, f.Size), part.Truncate(0))
	case errors.Is(err, syscall.ENOSPC):
		return err
	case at+n < f.Size && err == nil:
		return &cutOffError{io.ErrUnexpectedEOF}
	case err != nil:
		return &cutOffError{err}
	}
	return nil
}

// fileAt is a writer that writes to a file, beginning at the offset at.
type fileAt struct {
	f  *os.File
	at int64
}

// Write implements io.Writer.
func (w *fileAt) Write(p []byte) (int, error) {
	n, err := w.f.WriteAt(p, w.at)
	w.at += int64(n)
	return n, err
}

// poke is a writer that discards the data. Each Write calls the function.
type poke func()

// Write implements io.Writer.
func (p poke) Write(b []byte) (int, error) {
	p()
	return len(b), nil
}

// ask requests the bytes of a file from the offset at on. The response has these bytes (status 206) or the whole file
// (200).
func (g Getter) ask(ctx context.Context, f File, at int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity")
	if at > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", at))
	}
	client := http.Client{Transport: g.Transport, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) >= maxLinkedTo {
			return errors.New("too many redirections")
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w; is this machine on the internet? Behind a proxy, set HTTPS_PROXY", err)
	}
	if err := checkResponse(resp, f, at); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// checkResponse returns an error if a response cannot be the file from the offset at on, or the whole file.
func checkResponse(resp *http.Response, f File, at int64) error {
	wantSize := f.Size
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case kind == "text/html":
		return fmt.Errorf("%s answered with a web page instead of the file; does this network want a login in a browser?", resp.Request.URL.Host)
	case resp.StatusCode == http.StatusPartialContent && at > 0:
		wantSize -= at
		if want := fmt.Sprintf("bytes %d-%d/%d", at, f.Size-1, f.Size); resp.Header.Get("Content-Range") != want {
			return fmt.Errorf("%s sends another part of the file than the one that was asked for; remove the file that ends in %s, and try again", f.URL, partEnd)
		}
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answered %s", f.URL, resp.Status)
	}
	if resp.ContentLength >= 0 && resp.ContentLength != wantSize {
		return fmt.Errorf("%s sends %d bytes instead of %d", f.URL, resp.ContentLength, wantSize)
	}
	return nil
}
