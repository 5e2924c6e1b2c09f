package ota

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
)

// checkedFile is what was found when the file of an image was last read.
type checkedFile struct {
	info   os.FileInfo // nil if there was no file
	damage error
}

// same reports whether a file has not been changed since it was checked, as far as
// its folder tells.
func (c checkedFile) same(info os.FileInfo) bool {
	if c.info == nil || info == nil {
		return c.info == nil && info == nil
	}
	return os.SameFile(c.info, info) && c.info.Size() == info.Size() && c.info.ModTime().Equal(info.ModTime())
}

// damage returns why an image must not be sent to a robot, or nil. Its name is its
// SHA-256. The file is read once, and again only when its size, time or inode has
// changed, so that a check-in reads nothing. f.mu is held.
func (f *Firmware) damage(sha string) error {
	info, err := os.Lstat(f.path(sha))
	if err != nil {
		info = nil
	}
	if c, checked := f.checked[sha]; checked && c.same(info) {
		return c.damage
	}
	if err == nil {
		err = checkHash(f.path(sha), sha)
	}
	f.found(sha, info, err)
	return f.checked[sha].damage
}

// found stores the result of reading an image, and tells the owner of damage. f.mu is
// held.
func (f *Firmware) found(sha string, info os.FileInfo, err error) {
	before := f.checked[sha].damage
	c := checkedFile{info: info}
	if err != nil {
		if path, is := errors.AsType[*os.PathError](err); is {
			err = path.Err // the list is for owners, and the name is in it already
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

// errHash is why a file is not the image of its name.
var errHash = errors.New("its SHA-256 is another")

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

// sendable returns why an image is not sent to a robot now, or nil.
func (f *Firmware) sendable(sha string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.images[sha]; !there {
		return errNoImage
	}
	if damage := f.damage(sha); damage != nil {
		return &fault{"damaged_image", http.StatusServiceUnavailable, fmt.Errorf("the image cannot be sent: %w", damage)}
	}
	return nil
}

// sentHash checks an image while it is sent. A disk can change what it holds without
// a trace in the folder, and damage does not see that.
type sentHash struct {
	hash.Hash
	want    string
	damaged func() // is called once if the whole has another hash
}

// add takes the next piece, and returns an error if it is the last one and must not be
// sent. A robot that gets no end of an image keeps the one it has.
func (s *sentHash) add(b []byte, last bool) error {
	_, _ = s.Write(b) // it never fails
	if !last || hex.EncodeToString(s.Sum(nil)) == s.want {
		return nil
	}
	s.damaged()
	return errHash
}

// newSentHash returns the check of one download of an image.
func (f *Firmware) newSentHash(sha string) *sentHash {
	return &sentHash{sha256.New(), sha, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if info, err := os.Lstat(f.path(sha)); err == nil { // an image that was removed meanwhile needs no verdict
			f.found(sha, info, errHash)
		}
	}}
}
