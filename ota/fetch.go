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

// Limits of fetching an image by URL.
const (
	fetchWithin  = 15 * time.Minute
	mostRedirect = 5
)

// errFetchStalled cancels a fetch without progress.
var errFetchStalled = errors.New("nothing arrived for 30 seconds")

// Fetch downloads an image, and adds it to the catalogue for one board. The SHA-256
// identifies the file, so the server need not be trusted. It returns the image's version.
// Errors have a code and a status.
func (f *Firmware) Fetch(ctx context.Context, from, sha256, board string, now time.Time) (version string, err error) {
	u, err := url.Parse(from)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(from) > 2000 {
		return "", &fault{"bad_url", http.StatusBadRequest, errors.New("url is no address such as http://host/app.bin")}
	}
	if !isHash(sha256) {
		return "", &fault{"bad_sha256", http.StatusBadRequest, errors.New("sha256 is the file's SHA-256, in 64 digits of lower-case hex")}
	}
	upload := Upload{Boards: []string{board}, SHA256: sha256}
	if err := checkBoards(upload.Boards); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	ctx, stall := context.WithCancelCause(ctx)
	defer stall(nil)
	watch := time.AfterFunc(stallsAfter, func() { stall(errFetchStalled) })
	defer watch.Stop()
	body, err := f.request(ctx, u)
	if err != nil {
		return "", err
	}
	defer body.Close()
	image, err := f.Add(ctx, &watched{ctx, body, watch}, upload, now)
	return image.Version, err
}

func (f *Firmware) request(ctx context.Context, u *url.URL) (io.ReadCloser, error) {
	notFetched := func(format string, values ...any) error {
		return &fault{"not_fetched", http.StatusBadGateway,
			fmt.Errorf("the image cannot be had from %s: %s", u.Host, fmt.Sprintf(format, values...))}
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
		if len(via) > mostRedirect {
			return errors.New("too many redirects")
		}
		return nil
	}}
	answer, err := client.Do(request)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, notFetched("%v", context.Cause(ctx))
	case err != nil:
		if inner, is := errors.AsType[*url.Error](err); is {
			err = inner.Err // the rest is the URL, which may contain a key
		}
		return nil, notFetched("%v", err)
	case answer.StatusCode != http.StatusOK:
		answer.Body.Close()
		return nil, notFetched("it answered %s", answer.Status)
	case answer.ContentLength > espimage.MaxSize:
		answer.Body.Close()
		return nil, notFetched("%d bytes are more than any robot takes", answer.ContentLength)
	}
	return answer.Body, nil
}

// watched is a body that must not stall.
type watched struct {
	ctx   context.Context
	from  io.Reader
	watch *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	w.watch.Reset(stallsAfter)
	if err != nil && err != io.EOF && w.ctx.Err() != nil {
		err = &fault{"not_fetched", http.StatusBadGateway, errors.New("the image did not arrive whole: " + context.Cause(w.ctx).Error())}
	}
	return n, err
}
