package ota

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"perch/ota/espimage"
	"perch/store"
)

// Upload is an owner's declaration of an image.
type Upload struct {
	Boards    []string // boards it was built for
	SHA256    string   // expected hash, in hex; empty accepts any
	Signature string   // ed25519, of the 32 bytes of the SHA-256, in base64; may be empty
}

// Names of files in the folder.
const (
	imageExt   = ".bin"
	uploadName = ".upload-*" // until complete
	orphanage  = "orphaned"  // folder of images without a record
)

// ImageFile returns the name of an image's file in the folder, by its SHA-256 hash in hex.
func ImageFile(sha256 string) string { return sha256 + imageExt }

// imageFile matches the names of files of images.
var imageFile = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}\.bin$`) })

// AllowedFile returns the largest size in bytes of a file of the folder, which is an image or an
// asset, and an image's SHA-256 hash in hex. name is relative to the folder. ok is false for other
// files, such as unfinished uploads.
func AllowedFile(name string) (maxSize int64, sha256 string, ok bool) {
	if imageFile().MatchString(name) {
		return espimage.MaxSize, strings.TrimSuffix(name, imageExt), true
	}
	asset, ok := strings.CutPrefix(name, AssetsFolder+"/")
	return espimage.MaxSize, "", ok && assetName().MatchString(asset)
}

func (f *Firmware) path(sha string) string { return filepath.Join(f.o.Dir, ImageFile(sha)) }

// Add reads an image, checks it and adds it to the catalogue; no rollout offers it yet. An
// image that exists already is declared for more boards. Errors have a code and a status.
// An image that is refused or incomplete leaves nothing behind.
func (f *Firmware) Add(ctx context.Context, body io.Reader, u Upload, now time.Time) (Shown, error) {
	if err := checkBoards(u.Boards); err != nil {
		return Shown{}, err
	}
	var image Image
	var shown Shown
	var info os.FileInfo
	err := f.upload(ctx, f.o.Dir, func(file *os.File) (name string, err error) {
		image, err = receive(file, body, u, now)
		if err == nil {
			image.Signed, err = f.verify(image.SHA256, u.Signature)
		}
		if err == nil {
			err = f.fitsIn(image)
		}
		if err == nil {
			info, err = file.Stat()
		}
		return f.path(image.SHA256), err
	}, func() (err error) {
		shown, err = f.record(image, info)
		return err
	})
	return shown, err
}

// upload receives one file at a time into a folder, renames it, and calls done. It removes
// a file that is refused or incomplete.
func (f *Firmware) upload(ctx context.Context, dir string, receive func(file *os.File) (name string, err error), done func() error) error {
	select {
	case f.uploads <- struct{}{}:
		defer func() { <-f.uploads }()
	case <-ctx.Done():
		return fmt.Errorf("wait for another upload: %w", context.Cause(ctx))
	}
	err := os.MkdirAll(dir, 0o750)
	var file *os.File
	if err == nil {
		file, err = os.CreateTemp(dir, uploadName)
	}
	if err != nil {
		return diskFault(fmt.Errorf("write the file: %w", err))
	}
	defer os.Remove(file.Name()) // fails after a rename, which is fine
	defer file.Close()
	name, err := receive(file)
	if err != nil {
		return err
	}
	err = errors.Join(file.Chmod(0o640), file.Sync())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err == nil {
		err = store.SyncDirectory(dir)
	}
	if err != nil {
		return diskFault(fmt.Errorf("keep the file: %w", err))
	}
	return done()
}

// receive writes an image to its file and checks it there.
func receive(file *os.File, body io.Reader, u Upload, now time.Time) (Image, error) {
	n, err := io.Copy(file, io.LimitReader(body, espimage.MaxSize+1))
	if err != nil {
		return Image{}, uploadFault(err)
	}
	if n > espimage.MaxSize {
		return Image{}, &fault{espimage.TooLarge, http.StatusRequestEntityTooLarge,
			errors.New("the file is larger than 16 MB, which no robot's partition is")}
	}
	read, err := espimage.Read(file, n)
	if err != nil {
		return Image{}, contentFault(err)
	}
	image := newImage(read, slices.Clone(u.Boards), now)
	if u.SHA256 != "" && !strings.EqualFold(u.SHA256, image.SHA256) {
		return Image{}, &fault{"wrong_sha256", http.StatusUnprocessableEntity,
			fmt.Errorf("the file's SHA-256 is %s, and not %s: it is another file, or it was damaged on its way",
				image.SHA256, clip(u.SHA256))}
	}
	return image, image.check()
}

// uploadFault distinguishes an interrupted upload from a full disk.
func uploadFault(err error) error {
	_, known := errors.AsType[*fault](err)
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case known, tooLarge:
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &fault{"stalled", http.StatusRequestTimeout, errors.New("nothing arrived for 30 seconds")}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &fault{espimage.Truncated, http.StatusBadRequest, errors.New("the upload broke off")}
	}
	return diskFault(fmt.Errorf("write the image: %w", err))
}

// contentFault converts a refusal of a file's content to a fault.
func contentFault(err error) error {
	if refusal, is := errors.AsType[*espimage.Refusal](err); is {
		return &fault{refusal.Word, http.StatusUnprocessableEntity, refusal}
	}
	return err
}

func diskFault(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &fault{"disk_full", http.StatusInsufficientStorage,
			errors.New("the disk has no room for the image; remove some that are not needed any more")}
	}
	return err
}

// verify reports whether an image is signed by the configured key.
func (f *Firmware) verify(sha, signature string) (bool, error) {
	if f.o.Signer == nil {
		return false, nil
	}
	if signature == "" {
		return false, &fault{"no_signature", http.StatusForbidden,
			errors.New("this appliance takes images only with a signature by the key in firmware.public_key: ed25519, of the 32 bytes of the file's SHA-256")}
	}
	bytes, err := base64.StdEncoding.DecodeString(signature)
	digest, _ := hex.DecodeString(sha) // encoded by this program
	if err != nil || !ed25519.Verify(f.o.Signer, digest, bytes) {
		return false, &fault{"bad_signature", http.StatusForbidden,
			errors.New("the signature is not one of this image by the key in firmware.public_key")}
	}
	return true, nil
}

// fitsIn returns an error if the catalogue has no room for the image, or the boards are wrong.
func (f *Firmware) fitsIn(i Image) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.images[i.SHA256]; !there && len(f.images) >= mostImages {
		return &fault{"catalogue_full", http.StatusConflict, fmt.Errorf("there are %d images already; remove some that are not needed any more",
			mostImages)}
	}
	return i.checkUnits(f.units)
}

// record stores the record of an image whose file was checked and renamed already.
func (f *Firmware) record(i Image, file os.FileInfo) (Shown, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i.Added = f.afterChoices(i.Added)
	r := Record{Image: i}
	if known, there := f.images[i.SHA256]; there {
		r = known
		r.Signed = r.Signed || i.Signed
		r.Boards = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(known.Boards), i.Boards...))))
	}
	if err := checkBoards(r.Boards); err != nil {
		return Shown{}, err
	}
	if err := f.o.Images.Put(i.SHA256, r); err != nil {
		if _, there := f.images[i.SHA256]; !there {
			err = errors.Join(err, os.Remove(f.path(i.SHA256))) // a full disk needs the space
		}
		return Shown{}, diskFault(fmt.Errorf("keep the image: %w", err))
	}
	f.images[i.SHA256] = r
	f.checked[i.SHA256] = checkedFile{info: file} // another file has its name now
	delete(f.checking, i.SHA256)
	f.changed(i.SHA256)
	f.o.Log.Info("an image is in the catalogue", "sha256", i.SHA256, "project", i.Project, "version", i.Version, "boards", r.Boards)
	return f.shown(r), nil
}

// sweep makes folder and store consistent, and removes unfinished uploads. A file without a
// record, which was lost or not yet written, is put aside.
func (f *Firmware) sweep() error {
	files, err := os.ReadDir(f.o.Dir)
	if err != nil {
		return fmt.Errorf("read the folder for firmware: %w", err)
	}
	for _, file := range files {
		sha, isImage := strings.CutSuffix(file.Name(), imageExt)
		if _, known := f.images[sha]; file.Type().IsRegular() && isImage && isHash(sha) && !known {
			f.putAside(file.Name())
		}
	}
	for _, folder := range []string{"", AssetsFolder} {
		unfinished, _ := filepath.Glob(filepath.Join(f.o.Dir, folder, uploadName)) // the pattern is valid
		for _, name := range unfinished {
			if err := os.Remove(name); err != nil {
				return fmt.Errorf("remove an unfinished upload: %w", err)
			}
		}
	}
	for sha, r := range f.images {
		if info, err := os.Lstat(f.path(sha)); err == nil && info.Mode().IsRegular() && info.Size() == r.Size {
			continue
		}
		f.o.Log.Error("an image of the catalogue has lost its file, and is taken out of it; publish it again", "sha256", sha, "version", r.Version)
		if err := f.o.Images.Delete(sha); err != nil {
			return fmt.Errorf("take an image without a file out of the catalogue: %w", err)
		}
		delete(f.images, sha)
	}
	return nil
}

// putAside moves an image out of the folder. If that fails, it is harmless where it is.
func (f *Firmware) putAside(name string) {
	to := filepath.Join(f.o.Dir, orphanage, name)
	err := os.MkdirAll(filepath.Dir(to), 0o750)
	if err == nil {
		err = os.Rename(filepath.Join(f.o.Dir, name), to)
	}
	if err == nil {
		err = errors.Join(store.SyncDirectory(filepath.Dir(to)), store.SyncDirectory(f.o.Dir))
	}
	f.o.Log.Warn("an image that the catalogue does not know was put aside; publish it again, or remove it", "file", to, "err", err)
}
