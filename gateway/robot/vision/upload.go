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

// MaxUpload bounds an upload, in bytes: a picture, the headers of the parts and other fields.
const MaxUpload = limit.Message + 64<<10

// How many pictures may be on their way at a time. A robot's camera waits for the answer to one
// before it sends another.
const (
	mostUploads = 4
	// mostOfStrangers of them are of robots that nobody has adopted, so that those do not exclude
	// the others.
	mostOfStrangers = 2
	// uploadWithin is how long one may take to arrive: 4 MB over a Wi-Fi of 2 Mbit/s. A robot sends
	// a hundredth of that.
	uploadWithin = 15 * time.Second
)

// Errors of an upload that is refused.
var (
	errOneAtATime = &httpserver.Fault{Word: "one_at_a_time", HTTP: http.StatusTooManyRequests,
		Sentence: "this robot's last picture is still being looked at; send the next one after the answer"}
	errTooManyUploads = &httpserver.Fault{Word: "too_many_pictures", HTTP: http.StatusServiceUnavailable,
		Sentence: "too many pictures are being looked at; try again in a moment"}
	errSlowUpload = &httpserver.Fault{Word: "too_slow", HTTP: http.StatusRequestTimeout,
		Sentence: "the picture did not arrive within " + uploadWithin.String() + "; send a smaller one, or look at the network"}
)

// uploads are the pictures that are being received or looked at.
type uploads struct {
	mu       sync.Mutex
	stranger map[device.ID]bool // by robot
}

// reserve reserves a slot for a robot's picture, until leave is called.
func (u *uploads) reserve(id device.ID, stranger bool) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, one := u.stranger[id]; one {
		return nil, errOneAtATime
	}
	strangers := 0
	for _, is := range u.stranger {
		if is {
			strangers++
		}
	}
	if len(u.stranger) >= mostUploads || stranger && strangers >= mostOfStrangers {
		return nil, errTooManyUploads
	}
	u.stranger[id] = stranger
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.stranger, id)
	}, nil
}

// upload is a picture as cameras send it. The firmware sends the question first; browsers use any
// order, and some name the file "image".
type upload struct {
	question string
	picture  device.Picture
}

func badUpload(format string, a ...any) error {
	return &httpserver.Fault{Word: "bad_picture", Sentence: fmt.Sprintf(format, a...), HTTP: http.StatusBadRequest}
}

// readUpload reads the form, each part no further than its limit.
func readUpload(r *multipart.Reader) (upload, error) {
	var u upload
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return u, unreadable(err)
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
		Sentence: "the file is no JPEG, PNG, WebP or GIF picture"}
}

func readPart(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(data)) > most {
		return nil, &httpserver.Fault{Word: "picture_too_large", HTTP: http.StatusRequestEntityTooLarge,
			Sentence: fmt.Sprintf("a part of the form is larger than %d bytes", most)}
	}
	return data, nil
}

// unreadable returns an error with a code and a status as it is, and any other as a bad upload.
func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlowUpload
	}
	return badUpload("the form cannot be read: %s", err)
}
