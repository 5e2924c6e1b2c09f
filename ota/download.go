package ota

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
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
	stallTimeout     = 30 * time.Second // longest time without progress, as in the firmware
	queueTimeout     = 20 * time.Second // how long a download may wait for the check of its file, and again for its turn
	ticketLifetime   = 24 * time.Hour
	progressInterval = time.Second // shortest interval between two events of one download, since many events would delay others on the bus
	// maxPace is the largest number of bytes per second of one download. A robot cannot write faster
	// to its flash. Thirty downloads at the speed of the network would slow down conversations.
	maxPace = 512 << 10
)

// imagePath is the URL path of the images.
const imagePath = "/xiaozhi/ota/firmware/"

// location returns the URL path and query at which a robot downloads an image. The ticket
// identifies the robot, because the firmware does not send a header with its ID.
func (f *Firmware) location(sha string, id device.ID, now time.Time) string {
	return imagePath + sha + imageExt + "?r=" + f.ticket(sha, id, now)
}

// ticket returns a ticket, with which a robot may download a file until ticketLifetime after now.
func (f *Firmware) ticket(file string, id device.ID, now time.Time) string {
	until := strconv.FormatInt(now.Add(ticketLifetime).Unix(), 36)
	return string(id) + "." + until + "." + f.ticketMAC(file, id, until)
}

// ticketMAC returns the message authentication code of a ticket.
func (f *Firmware) ticketMAC(file string, id device.ID, until string) string {
	h := hmac.New(sha256.New, f.o.Key)
	fmt.Fprintf(h, "firmware\n%s\n%s\n%s", file, id, until)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// checkTicket returns the robot of a ticket for a file, or errTicket if the ticket is not valid now.
func (f *Firmware) checkTicket(file, ticket string, now time.Time) (device.ID, error) {
	parts := strings.Split(ticket, ".")
	if len(parts) != 3 {
		return "", errTicket
	}
	id, until := device.ID(parts[0]), parts[1]
	seconds, err := strconv.ParseInt(until, 36, 64)
	if err != nil || !f.isTicketCurrent(time.Unix(seconds, 0), now) || !hmac.Equal([]byte(parts[2]), []byte(f.ticketMAC(file, id, until))) {
		return "", errTicket
	}
	return id, nil
}

// isTicketCurrent reports whether a ticket that ends at until is valid at now, or at the time that the
// clock would show if it had not been set since the start of the appliance: the ticket may have been
// made before the clock was set.
func (f *Firmware) isTicketCurrent(until, now time.Time) bool {
	isValidAt := func(now time.Time) bool {
		left := until.Sub(now.Round(0).Truncate(time.Second))
		return 0 <= left && left <= ticketLifetime
	}
	return isValidAt(now) || isValidAt(f.started.Add(f.running()))
}

var errTicket = refuse("bad_ticket", http.StatusForbidden,
	"the address does not contain a valid ticket; the appliance gives a robot an address with a ticket for one day")

var errBusy = refuse("busy", http.StatusServiceUnavailable, "too many robots are downloading; the robot tries again at its next start")

// acquireDownload waits until fewer than maxDownloads downloads are running. It returns errBusy if
// the robot has maxDownloadsPerRobot downloads already, or after queueTimeout. The caller must call
// release after the download.
func (f *Firmware) acquireDownload(ctx context.Context, id device.ID) (release func(), err error) {
	f.mu.Lock()
	isBusy := f.busy[id] >= maxDownloadsPerRobot
	if !isBusy {
		f.busy[id]++
	}
	f.mu.Unlock()
	if isBusy {
		return nil, errBusy
	}
	releaseRobot := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.busy[id]--; f.busy[id] == 0 {
			delete(f.busy, id)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, queueTimeout, errBusy)
	defer cancel()
	select {
	case f.downloads <- struct{}{}:
		return func() { <-f.downloads; releaseRobot() }, nil
	case <-ctx.Done():
		releaseRobot()
		return nil, context.Cause(ctx)
	}
}

// download sends an image, or a range of it.
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
	wholeSHA := sha
	if r.Method != http.MethodGet || r.Header.Get("Range") != "" {
		wholeSHA = ""
	}
	return f.stream(w, r, id, f.path(sha), wholeSHA)
}

// stream sends a file once acquireDownload permits it. wholeSHA is the hash of an image that is
// sent as a whole, and otherwise empty.
func (f *Firmware) stream(w http.ResponseWriter, r *http.Request, id device.ID, name, wholeSHA string) error {
	release, err := f.acquireDownload(r.Context(), id)
	if err != nil {
		return err
	}
	defer release()
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open a file to download: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("open a file to download: %w", err)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "private, no-transform")
	p := &pacedWriter{ResponseWriter: w, ctx: r.Context(), control: http.NewResponseController(w), size: info.Size(),
		pace: limit.PerSecond(maxPace), firmware: f, id: id, sha: wholeSHA, sum: sha256.New()}
	http.ServeContent(p, r, "", info.ModTime(), file)
	_ = p.control.SetWriteDeadline(time.Time{}) // the connection may be reused
	return nil
}

// pacedWriter sends a response at maxPace. Each Write must end within stallTimeout. For a whole
// image it publishes the progress, and does not send the last bytes if the hash of the file is
// wrong: a robot that does not receive them keeps its present image. pacedWriter has no method
// ReadFrom, which would send the whole file at once.
type pacedWriter struct {
	http.ResponseWriter
	ctx      context.Context // context of the request
	control  *http.ResponseController
	size     int64 // of the file, in bytes
	pace     limit.Pace
	firmware *Firmware
	id       device.ID
	sha      string    // expected hash of a whole image; empty for other files
	sum      hash.Hash // hash of the bytes written so far

	sent     int64     // number of bytes sent so far
	reported time.Time // when the progress was last published
}

// Write sends a part of the response, and then waits as maxPace requires.
func (p *pacedWriter) Write(b []byte) (int, error) {
	if p.sha != "" {
		p.sum.Write(b)
		if p.sent+int64(len(b)) == p.size && hex.EncodeToString(p.sum.Sum(nil)) != p.sha {
			p.firmware.recordDamageWhileSent(p.sha)
			return 0, errHash
		}
	}
	_ = p.control.SetWriteDeadline(time.Now().Add(stallTimeout)) // returns no error for a network connection
	n, err := p.ResponseWriter.Write(b)
	p.sent += int64(n)
	if now := time.Now(); p.sha != "" && n > 0 && (p.sent == p.size || now.Sub(p.reported) >= progressInterval) {
		p.reported = now
		p.firmware.progress(p.id, p.sha, p.sent)
	}
	if err == nil && p.sent < p.size {
		p.pace.Took(n)
		p.pace.Wait(p.ctx.Done())
		err = context.Cause(p.ctx)
	}
	return n, err
}
