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

// checkedFile is the result of checking an image's file.
type checkedFile struct {
	info   os.FileInfo // metadata of the file; nil if there was no file
	damage error       // what is wrong with the file; nil if the file is undamaged
}

// isUnchanged reports whether info is the metadata of the checked file.
func (c checkedFile) isUnchanged(info os.FileInfo) bool {
	if c.info == nil || info == nil {
		return c.info == nil && info == nil
	}
	return os.SameFile(c.info, info) && c.info.Size() == info.Size() && c.info.ModTime().Equal(info.ModTime())
}

// imageCheck is a running check of an image's file. Any number of goroutines may wait for it.
type imageCheck struct {
	done chan struct{} // closed at the end of the check
	due  time.Time     // check-ins wait for the check until this time
}

// checkTimeout is how long check-ins wait for a check. A slow SD card reads 16 MB in about two
// seconds; a card that hangs must not block a robot.
const checkTimeout = 2 * time.Second

// wait waits until the check has ended, at most until c.due, and reports whether it has ended.
// The caller must not hold f.mu.
func (c *imageCheck) wait() bool {
	select {
	case <-c.done:
		return true
	case <-time.After(time.Until(c.due)):
		return false
	}
}

// check returns the running check of an image's file, or starts a check. The file is read only
// if its metadata has changed since the last check. The caller holds f.mu; the check does not
// hold f.mu while it reads, because a failing SD card may block for minutes. After Close, check
// starts no check; if none is running, it returns an imageCheck whose done is never closed.
func (f *Firmware) check(sha string) *imageCheck {
	if c, running := f.checking[sha]; running {
		return c
	}
	c := &imageCheck{done: make(chan struct{})}
	if f.closed {
		return c
	}
	c.due = time.Now().Add(checkTimeout)
	f.checking[sha] = c
	before, hasResult := f.checked[sha]
	f.checks.Go(func() {
		defer close(c.done)
		info, err := os.Lstat(f.path(sha))
		if err != nil {
			info = nil
		}
		unchanged := hasResult && before.isUnchanged(info)
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

// Close prevents further checks, and waits for the running ones. It must be called once.
func (f *Firmware) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.checks.Wait()
}

// decide returns the state of a robot after a check-in, and the verdict. It offers an image only
// after a check of the image's file. ok is false if the robot is new and no more robots can be stored.
// The caller holds f.mu, which decide releases while it waits for a check.
func (f *Firmware) decide(s sighting) (unit Unit, v verdict, ok bool) {
	checked := map[string]bool{}
	for readable := true; ; {
		before, hasUnit := f.units[s.robot]
		if !hasUnit && len(f.units) >= maxUnits {
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

// errUnread is used as the damage of all undamaged images during a check-in if the check of a
// file has not ended in time, so that no image is offered.
var errUnread = errors.New("its file could not be read yet")

// recordCheck stores the result of checking an image's file, and logs and publishes new damage.
// The caller holds f.mu.
func (f *Firmware) recordCheck(sha string, info os.FileInfo, err error) {
	before := f.checked[sha].damage
	c := checkedFile{info: info}
	if err != nil {
		if pathErr, ok := errors.AsType[*os.PathError](err); ok {
			err = pathErr.Err // without the path, which means nothing to owners
		}
		c.damage = fmt.Errorf("its file is damaged (%w); publish it again, and check the disk", err)
	}
	f.checked[sha] = c
	if c.damage == nil || before != nil {
		return
	}
	f.o.Log.Error("the file of an image is damaged, and the image is no longer offered; publish it again, and check the disk", "sha256", sha,
		"version", f.images[sha].Version, "err", err)
	f.publishChange(sha)
}

// errHash is the damage of a file whose name is not the hash of its content.
var errHash = errors.New("its SHA-256 does not match")

// checkHash reads a file and returns errHash if its SHA-256, in hex, is not want.
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

// checkSendable returns an error if an image cannot be sent now. It checks the file, for at most
// queueTimeout. Robots wait longer for a response.
func (f *Firmware) checkSendable(ctx context.Context, sha string) error {
	f.mu.Lock()
	_, ok := f.images[sha]
	if !ok {
		f.mu.Unlock()
		return errNoImage
	}
	c := f.check(sha)
	f.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, queueTimeout, refuse("unread_image", http.StatusServiceUnavailable,
		"the image cannot be sent: its file cannot be read; check the disk"))
	defer cancel()
	select {
	case <-c.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if damage := f.checked[sha].damage; damage != nil {
		return refuse("damaged_image", http.StatusServiceUnavailable, "the image cannot be sent: %w", damage)
	}
	return nil
}

// recordDamageWhileSent records damage that was found while the file of an image was sent. The check
// before the download did not find the damage, because it reads a file only if its metadata has changed.
func (f *Firmware) recordDamageWhileSent(sha string) {
	info, err := os.Lstat(f.path(sha))
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil { // otherwise the image was removed
		f.recordCheck(sha, info, errHash)
	}
}
