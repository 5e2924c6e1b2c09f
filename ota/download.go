package ota

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"perch/device"
	"perch/limit"
)

// Limits of a download.
const (
	stallsAfter   = 30 * time.Second // without progress, as in the firmware
	queuesFor     = 20 * time.Second // less than the firmware waits for an answer
	ticketLasts   = 24 * time.Hour
	progressEvery = time.Second // at most: thirty robots must not displace speech on the bus
	// mostPace is in bytes per second, at least what a robot writes to its flash:
	// thirty downloads at the speed of the network would take the processor from
	// conversations.
	mostPace = 512 << 10
)

// downloads is the URL path of the images.
const downloads = "/xiaozhi/ota/firmware/"

// location returns where a robot downloads an image. The ticket identifies the
// robot, because the firmware sends no header that does.
func (f *Firmware) location(sha string, id device.ID, now time.Time) string {
	return downloads + sha + imageExt + "?r=" + f.newTicket(sha, id, now)
}

// newTicket returns a ticket for a URL: for one file and one robot, valid for a day.
func (f *Firmware) newTicket(what string, id device.ID, now time.Time) string {
	until := strconv.FormatInt(now.Add(ticketLasts).Unix(), 36)
	return string(id) + "." + until + "." + f.ticket(what, id, until)
}

func (f *Firmware) ticket(what string, id device.ID, until string) string {
	h := hmac.New(sha256.New, f.o.Key)
	fmt.Fprintf(h, "firmware\n%s\n%s\n%s", what, id, until)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// checkTicket checks a ticket and returns its robot.
func (f *Firmware) checkTicket(what, ticket string, now time.Time) (device.ID, error) {
	parts := strings.Split(ticket, ".")
	if len(parts) != 3 {
		return "", errTicket
	}
	id, until := device.ID(parts[0]), parts[1]
	seconds, err := strconv.ParseInt(until, 36, 64)
	if err != nil || !f.ticketValid(time.Unix(seconds, 0), now) || !hmac.Equal([]byte(parts[2]), []byte(f.ticket(what, id, until))) {
		return "", errTicket
	}
	return id, nil
}

// ticketValid reports whether a ticket that ends at until is valid now. If the clock was set
// after the start of the appliance, an earlier ticket is judged by the earlier clock.
func (f *Firmware) ticketValid(until, now time.Time) bool {
	within := func(now time.Time) bool {
		left := until.Sub(now.Round(0).Truncate(time.Second))
		return 0 <= left && left <= ticketLasts
	}
	return within(now) || within(f.began.Add(f.running()))
}

var errTicket = &fault{"bad_ticket", http.StatusForbidden, errors.New("the address of an image or an asset file carries a ticket for a robot and a day, from the appliance; this one is not valid, or no longer")}

var errBusy = &fault{"busy", http.StatusServiceUnavailable, errors.New("too many robots download now; the robot asks again when it next starts")}

// acquireDownload waits for a download slot, which leave frees.
func (f *Firmware) acquireDownload(ctx context.Context, id device.ID) (leave func(), err error) {
	f.mu.Lock()
	crowded := f.busy[id] >= mostOfOne
	if !crowded {
		f.busy[id]++
	}
	f.mu.Unlock()
	if crowded {
		return nil, errBusy
	}
	release := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.busy[id]--; f.busy[id] == 0 {
			delete(f.busy, id)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, queuesFor, errBusy)
	defer cancel()
	select {
	case f.downloads <- struct{}{}:
		return func() { <-f.downloads; release() }, nil
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	}
}

// download streams an image: whole with its length for robots, or ranges for others.
func (f *Firmware) download(w http.ResponseWriter, r *http.Request, name, ticket string) error {
	sha, isImage := strings.CutSuffix(name, imageExt)
	if !isImage || !isHash(sha) {
		return errNoImage
	}
	id, err := f.checkTicket(sha, ticket, time.Now())
	if err != nil {
		return err
	}
	if err := f.checkSendable(r.Context(), sha); err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+sha+`"`)
	whole := sha
	if r.Method != http.MethodGet || r.Header.Get("Range") != "" {
		whole = ""
	}
	return f.stream(w, r, id, f.path(sha), whole)
}

// stream sends a file when a download slot is free. sha is set if the file is an image that
// is sent as a whole.
func (f *Firmware) stream(w http.ResponseWriter, r *http.Request, id device.ID, name, sha string) error {
	leave, err := f.acquireDownload(r.Context(), id)
	if err != nil {
		return err
	}
	defer leave()
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open what a robot downloads: %w", err)
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil {
		return fmt.Errorf("open what a robot downloads: %w", err)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "private, no-transform")
	p := &paced{ResponseWriter: w, ctx: r.Context(), control: http.NewResponseController(w), size: about.Size(),
		pace: limit.PerSecond(mostPace), firmware: f, id: id, sha: sha, sum: sha256.New()}
	http.ServeContent(p, r, "", about.ModTime(), file)
	_ = p.control.SetWriteDeadline(time.Time{}) // the connection may be reused
	return nil
}

// paced is an answer sent in pieces, at mostPace. Each piece must be received in time. The
// progress of an image is published, and its last piece is not sent unless the hash is right:
// a robot that does not get the end of an image keeps its old one. paced has no ReadFrom,
// which would send the whole file at once.
type paced struct {
	http.ResponseWriter
	ctx      context.Context // the request's
	control  *http.ResponseController
	size     int64
	pace     limit.Pace
	firmware *Firmware
	id       device.ID
	sha      string // of a whole image, or empty
	sum      hash.Hash

	sent int64
	last time.Time // of the published progress
}

func (p *paced) Write(b []byte) (int, error) {
	if p.sha != "" {
		p.sum.Write(b)
		if p.sent+int64(len(b)) == p.size && hex.EncodeToString(p.sum.Sum(nil)) != p.sha {
			p.firmware.damagedWhileSent(p.sha)
			return 0, errHash
		}
	}
	_ = p.control.SetWriteDeadline(time.Now().Add(stallsAfter)) // every network connection has deadlines
	n, err := p.ResponseWriter.Write(b)
	p.sent += int64(n)
	if now := time.Now(); p.sha != "" && n > 0 && (p.sent == p.size || now.Sub(p.last) >= progressEvery) {
		p.last = now
		p.firmware.progress(p.id, p.sha, p.sent)
	}
	if err == nil && p.sent < p.size {
		p.pace.Took(n)
		p.pace.Wait(p.ctx.Done())
		err = context.Cause(p.ctx)
	}
	return n, err
}
