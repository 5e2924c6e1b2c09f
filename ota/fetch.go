package ota

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"perch/ota/espimage"
)

// Limits of Fetch. stallTimeout also applies.
const (
	fetchTimeout = 15 * time.Minute
	maxRedirects = 5
)

// errFetchStalled is the cause of a download that was cancelled for lack of progress.
var errFetchStalled = errors.New("nothing arrived for 30 seconds")

// Fetch downloads an image from an HTTP or HTTPS URL and adds the image to the catalogue for one
// board. It returns the image's version. The server need not be trusted, because the file must have
// the expected SHA-256, in lower-case hex. The error is a *httpserver.Fault or an internal error.
func (f *Firmware) Fetch(ctx context.Context, from, sha256, board string, now time.Time) (version string, err error) {
	u, err := url.Parse(from)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(from) > 2000 {
		return "", refuse("bad_url", http.StatusBadRequest, "url is not an address such as http://host/app.bin")
	}
	if !isHash(sha256) {
		return "", refuse("bad_sha256", http.StatusBadRequest, "sha256 is not 64 digits of lower-case hex")
	}
	upload := Upload{Boards: []string{board}, SHA256: sha256}
	if err := checkBoards(upload.Boards); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	ctx, stall := context.WithCancelCause(ctx)
	defer stall(nil)
	watch := time.AfterFunc(stallTimeout, func() { stall(errFetchStalled) })
	defer watch.Stop()
	body, err := f.request(ctx, u)
	if err != nil {
		return "", err
	}
	defer body.Close()
	image, err := f.Add(ctx, &watched{ctx, body, watch}, upload, now)
	return image.Version, err
}

// request requests a file and returns the body of the response. Its error is a *httpserver.Fault.
func (f *Firmware) request(ctx context.Context, u *url.URL) (io.ReadCloser, error) {
	notFetched := func(format string, values ...any) error {
		return refuse("not_fetched", http.StatusBadGateway,
			"the image cannot be downloaded from %s: %s", u.Host, fmt.Sprintf(format, values...))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, notFetched("%v", err)
	}
	network := f.o.Fetch
	if network == nil {
		network = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	}
	client := http.Client{Transport: network, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		return nil
	}}
	response, err := client.Do(request)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, notFetched("%v", context.Cause(ctx))
	case err != nil:
		if urlErr, ok := errors.AsType[*url.Error](err); ok {
			err = urlErr.Err // without the URL, which may contain a key
		}
		return nil, notFetched("%v", err)
	case response.StatusCode != http.StatusOK:
		response.Body.Close()
		return nil, notFetched("it answered %s", response.Status)
	case response.ContentLength > espimage.MaxSize:
		response.Body.Close()
		return nil, notFetched("it has %d bytes, which is more than any robot's partition holds", response.ContentLength)
	}
	return response.Body, nil
}

// watched is the body of a download. Each Read restarts the timer that cancels the download.
type watched struct {
	ctx   context.Context
	from  io.Reader
	watch *time.Timer
}

// Read reads from the body. If the download was cancelled, it returns the cause.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	w.watch.Reset(stallTimeout)
	if err != nil && err != io.EOF && w.ctx.Err() != nil {
		err = refuse("not_fetched", http.StatusBadGateway, "the image did not arrive completely: %w", context.Cause(w.ctx))
	}
	return n, err
}
