package vision

import (
	"bytes"
	"errors"
	"mime/multipart"
	"testing"
	"time"

	"perch/device"
	"perch/gateway/httpserver"
	"perch/limit"
)

// TestUploadsAreBounded checks the limits of uploads under way: one for each robot, four in total, and two of
// strangers.
func TestUploadsAreBounded(t *testing.T) {
	u := uploads{open: map[device.ID]bool{}}
	enter := func(id device.ID, stranger bool, want error) func() {
		t.Helper()
		leave, err := u.reserve(id, stranger)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
		return leave
	}
	first := enter("s1", true, nil)
	enter("s1", true, errOneAtATime)
	enter("s2", true, nil)
	enter("s3", true, errTooManyUploads)
	enter("a", false, nil)
	enter("a", false, errOneAtATime)
	enter("b", false, nil)
	enter("c", false, errTooManyUploads)
	first()
	enter("c", false, nil)
	enter("s1", true, errTooManyUploads)
}

// TestTokensOfOneSession checks that only the latest two tokens of a session are valid.
func TestTokensOfOneSession(t *testing.T) {
	s, now := New(Options{}), time.Now()
	var last [3]string
	for range 1000 {
		_, token := s.Issue(device.Robot{ID: "a0b1c2d3e4f5", BaseURL: "http://a:1"}, "s", now)
		last = [3]string{last[1], last[2], token}
	}
	for i, want := range []bool{false, true, true} {
		if _, ok := s.holder(last[i], now); ok != want {
			t.Errorf("token %d is valid: %v", i, ok)
		}
	}
	if len(s.tokens) != 2 {
		t.Errorf("%d tokens of one session", len(s.tokens))
	}
}

// FuzzUpload reads arbitrary forms. An error must be a *httpserver.Fault.
func FuzzUpload(f *testing.F) {
	jpeg := "\xff\xd8\xff\xe0\x00\x10JFIF\x00"
	f.Add([]byte(
		"--b\r\nContent-Disposition: form-data; name=\"question\"\r\n\r\nwhat?\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"camera.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n" + jpeg + "\r\n--b--\r\n"))
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=\"image\"\r\n\r\n<svg/>\r\n--b--\r\n"))
	f.Add([]byte("--b--"))
	f.Fuzz(func(t *testing.T, form []byte) {
		u, err := readUpload(multipart.NewReader(bytes.NewReader(form), "b"))
		var fault *httpserver.Fault
		if err != nil && !errors.As(err, &fault) {
			t.Errorf("an error that does not say how it is shown: %v", err)
		}
		if err == nil && (len(u.picture.Data) == 0 || len(u.question) > limit.Text) {
			t.Errorf("taken: %d bytes, %q", len(u.picture.Data), u.question)
		}
	})
}
