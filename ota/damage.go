package ota

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// checkedFile is the result of the last reading of an image's file.
type checkedFile struct {
	info   os.FileInfo // nil if there was no file
	damage error
}

// same reports whether a file is unchanged since it was checked, by its metadata.
func (c checkedFile) same(info os.FileInfo) bool {
	if c.info == nil || info == nil {
		return c.info == nil && info == nil
	}
	return os.SameFile(c.info, info) && c.info.Size() == info.Size() && c.info.ModTime().Equal(info.ModTime())
}

// imageCheck is a running check of an image's file. Any number of goroutines may wait for it.
type imageCheck struct {
	done chan struct{} // closed at its end
	due  time.Time     // until then check-ins wait
}

// checkWithin is how long check-ins wait for a check. A slow card reads 16 MB in about that
// time; a hanging card must not block a robot.
const checkWithin = 2 * time.Second

// wait waits for the end of a check, at most until c.due, and reports whether it ended. f.mu
// is not held.
func (c *imageCheck) wait() bool {
	select {
	case <-c.done:
		return true
	case <-time.After(time.Until(c.due)):
		return false
	}
}

// check starts to check the file of an image, whose name is its SHA-256, unless a check is
// running. It reads the file only if its size, time or inode has changed since the last
// reading. The work is done without f.mu, because a failing card may block for minutes.
// f.mu is held.
func (f *Firmware) check(sha string) *imageCheck {
	if c, running := f.checking[sha]; running {
		return c
	}
	c := &imageCheck{done: make(chan struct{})}
	if f.closed {
		return c
	}
	c.due = time.Now().Add(checkWithin)
	f.checking[sha] = c
	before, known := f.checked[sha]
	f.checks.Go(func() {
		defer close(c.done)
		info, err := os.Lstat(f.path(sha))
		if err != nil {
			info = nil
		}
		unchanged := known && before.same(info)
		if !unchanged && err == nil {
			err = checkHash(f.path(sha), sha)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.checking[sha] != c {
			return // the image was removed or published again
		}
		delete(f.checking, sha)
		if !unchanged {
			f.recordCheck(sha, info, err)
		}
	})
	return c
}

// Close waits until no image is being read. It must be called once.
func (f *Firmware) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.checks.Wait()
}

// decide judges a check-in, after checking the image that it would offer. It reports false
// if no more robots can be stored. f.mu is held, but not while it waits.
func (f *Firmware) decide(s sighting) (unit Unit, v verdict, ok bool) {
	checked := map[string]bool{}
	for readable := true; ; {
		before, known := f.units[s.robot]
		if !known && len(f.units) >= mostUnits {
			return Unit{}, verdict{}, false
		}
		images := f.records()
		for i := range images {
			if !readable && images[i].damage == nil {
				images[i].damage = errUnread
			}
		}
		unit, v = step(before, s, images)
		if v.offer == nil || checked[v.offer.SHA256] {
			return unit, v, true
		}
		sha := v.offer.SHA256
		c := f.check(sha)
		f.mu.Unlock()
		readable = c.wait()
		f.mu.Lock()
		checked[sha] = true
	}
}

// errUnread is why nothing is offered while an image is being read.
var errUnread = errors.New("its file could not be read yet")

// recordCheck stores the result of reading an image, and notifies the owner of damage. f.mu is
// held.
func (f *Firmware) recordCheck(sha string, info os.FileInfo, err error) {
	before := f.checked[sha].damage
	c := checkedFile{info: info}
	if err != nil {
		if path, is := errors.AsType[*os.PathError](err); is {
			err = path.Err // the list is for owners and has the name already
		}
		c.damage = fmt.Errorf("its file is damaged (%w); publish it again, and check the disk", err)
	}
	f.checked[sha] = c
	if c.damage == nil || before != nil {
		return
	}
	f.o.Log.Error("an image is damaged on the disk, and is offered to no robot; publish it again, and check the disk", "sha256", sha,
		"version", f.images[sha].Version, "err", err)
	f.changed(sha)
}

// errHash reports a file that is not the image of its name.
var errHash = errors.New("its SHA-256 does not match")

// checkHash reads a file and compares its SHA-256.
func checkHash(name, want string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != want {
		return errHash
	}
	return nil
}

// checkSendable returns an error if an image cannot be sent now. It waits for the image's check
// as long as the robot waits for an answer.
func (f *Firmware) checkSendable(ctx context.Context, sha string) error {
	f.mu.Lock()
	_, there := f.images[sha]
	if !there {
		f.mu.Unlock()
		return errNoImage
	}
	c := f.check(sha)
	f.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, queuesFor, &fault{"unread_image", http.StatusServiceUnavailable,
		errors.New("the image cannot be sent: its file cannot be read; check the disk")})
	defer cancel()
	select {
	case <-c.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if damage := f.checked[sha].damage; damage != nil {
		return &fault{"damaged_image", http.StatusServiceUnavailable, fmt.Errorf("the image cannot be sent: %w", damage)}
	}
	return nil
}

// damagedWhileSent records that an image was damaged without a change of the file's metadata,
// so that check has not noticed it.
func (f *Firmware) damagedWhileSent(sha string) {
	info, err := os.Lstat(f.path(sha))
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil { // else the image has been removed
		f.recordCheck(sha, info, errHash)
	}
}
