package vision

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"perch/device"
	"perch/gateway/httpserver"
	"perch/limit"
)

// MaxUpload is the largest size of an upload, in bytes: a picture, the other fields of the form and the
// headers of its parts.
const MaxUpload = limit.Message + 64<<10

// Limits of uploads. An upload counts until its response. Each robot may have only one upload under way.
const (
	maxUploads         = 4
	maxStrangerUploads = 2 // uploads from robots that are not adopted, so that adopted robots can still upload
	// uploadTimeout is how long an upload may take to arrive. It suffices for 4 MB over a Wi-Fi of 3 Mbit/s;
	// a robot's picture has a hundredth of that size.
	uploadTimeout = 15 * time.Second
)

// Errors of uploads that are refused.
var (
	errOneAtATime = &httpserver.Fault{Word: "one_at_a_time", HTTP: http.StatusTooManyRequests,
		Sentence: "this robot's previous picture is still being looked at; send the next one after the answer"}
	errTooManyUploads = &httpserver.Fault{Word: "too_many_pictures", HTTP: http.StatusServiceUnavailable,
		Sentence: "too many pictures are being looked at; try again in a moment"}
	errSlowUpload = &httpserver.Fault{Word: "too_slow", HTTP: http.StatusRequestTimeout,
		Sentence: "the picture did not arrive within " + uploadTimeout.String() + "; send a smaller one, or check the network"}
)

// uploads counts the uploads under way.
type uploads struct {
	mu   sync.Mutex
	open map[device.ID]bool // uploads under way; the value says whether the robot is a stranger
}

// reserve counts an upload of a robot until release is called. It returns errOneAtATime or errTooManyUploads
// if a limit is reached.
func (u *uploads) reserve(id device.ID, stranger bool) (release func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, open := u.open[id]; open {
		return nil, errOneAtATime
	}
	strangers := 0
	for _, isStranger := range u.open {
		if isStranger {
			strangers++
		}
	}
	if len(u.open) >= maxUploads || stranger && strangers >= maxStrangerUploads {
		return nil, errTooManyUploads
	}
	u.open[id] = stranger
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.open, id)
	}, nil
}

// upload is an uploaded picture, and a question about it.
type upload struct {
	question string
	picture  device.Picture
}

// badUpload returns the error for a form that cannot be used.
func badUpload(format string, a ...any) error {
	return &httpserver.Fault{Word: "bad_picture", Sentence: fmt.Sprintf(format, a...), HTTP: http.StatusBadRequest}
}

// readUpload reads a form with a question and a picture, in any order. Some clients name the picture "image"
// instead of "file".
func readUpload(r *multipart.Reader) (upload, error) {
	var u upload
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return u, readError(err)
		}
		switch part.FormName() {
		case "question":
			text, err := readPart(part, limit.Text)
			if err != nil {
				return u, err
			}
			u.question = strings.ToValidUTF8(string(text), "")
		case "file", "image":
			if u.picture.Data, err = readPart(part, limit.Message); err != nil {
				return u, err
			}
		}
	}
	if len(u.picture.Data) == 0 {
		return u, badUpload(`the form has no picture; it belongs in the part "file"`)
	}
	u.picture.Type = http.DetectContentType(u.picture.Data) // the declared type may be wrong
	switch u.picture.Type {
	case "image/jpeg", "image/png", "image/webp", "image/gif":
		return u, nil
	}
	return u, &httpserver.Fault{Word: "no_picture", HTTP: http.StatusUnsupportedMediaType,
		Sentence: "the file is not a JPEG, PNG, WebP or GIF picture"}
}

// readPart reads a part of the form. It returns an error if the part has more than maxSize bytes.
func readPart(r io.Reader, maxSize int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return nil, readError(err)
	}
	if int64(len(data)) > maxSize {
		return nil, &httpserver.Fault{Word: "picture_too_large", HTTP: http.StatusRequestEntityTooLarge,
			Sentence: fmt.Sprintf("a part of the form is larger than %d bytes", maxSize)}
	}
	return data, nil
}

// readError returns the error for a form that could not be read: too large, too slow, or otherwise bad.
func readError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlowUpload
	}
	return badUpload("the form cannot be read: %s", err)
}
