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

	"perch/gateway/httpserver"
	"perch/ota/espimage"
	"perch/store"
)

// Upload is what the owner declares about an uploaded image.
type Upload struct {
	Boards    []string // boards that the image was built for
	SHA256    string   // expected hash of the file, in hex; empty accepts any file
	Signature string   // Ed25519 signature of the 32 bytes of the SHA-256, in base64; may be empty
}

// Names in the folder of the catalogue.
const (
	imageExt       = ".bin"
	uploadName     = ".upload-*" // pattern for the names of incomplete uploads
	orphanedFolder = "orphaned"  // for images without a record
)

// ImageFile returns the name of an image's file in the folder of the catalogue. sha256 is the
// hash of the image in hex.
func ImageFile(sha256 string) string { return sha256 + imageExt }

// imageFile matches the results of ImageFile.
var imageFile = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}\.bin$`) })

// AllowedFile reports whether a file in the folder of the catalogue is an image or an asset
// file. name is the path relative to the folder. maxSize is the largest valid size in bytes;
// sha256 is the expected hash of an image in hex, and empty for an asset file.
func AllowedFile(name string) (maxSize int64, sha256 string, ok bool) {
	if imageFile().MatchString(name) {
		return espimage.MaxSize, strings.TrimSuffix(name, imageExt), true
	}
	asset, ok := strings.CutPrefix(name, AssetsFolder+"/")
	return espimage.MaxSize, "", ok && assetName().MatchString(asset)
}

// path returns the path of an image's file.
func (f *Firmware) path(sha string) string { return filepath.Join(f.o.Dir, ImageFile(sha)) }

// Add reads an image, checks it and adds it to the catalogue, without a rollout. If the catalogue
// already has the image, Add replaces its file, adds the boards to its record, and marks the record as
// signed if the upload is signed. An image that is invalid or incomplete is not stored. The error is a *httpserver.Fault, an
// *http.MaxBytesError, or an internal error.
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
			err = f.checkNewImage(image)
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

// upload stores a file in a folder; only one upload runs at a time. write writes and checks
// the file and returns its final path. done is called after the file was renamed to that path, and
// its error is returned. If write returns an error, the file is removed.
func (f *Firmware) upload(ctx context.Context, dir string, write func(file *os.File) (name string, err error), done func() error) error {
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
	defer os.Remove(file.Name()) // fails if the file was renamed
	defer file.Close()
	name, err := write(file)
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
		return diskFault(fmt.Errorf("store the file: %w", err))
	}
	return done()
}

// receive writes an image to a file and checks the image.
func receive(file *os.File, body io.Reader, u Upload, now time.Time) (Image, error) {
	n, err := io.Copy(file, io.LimitReader(body, espimage.MaxSize+1))
	if err != nil {
		return Image{}, uploadFault(err)
	}
	if n > espimage.MaxSize {
		return Image{}, refuse(espimage.TooLarge, http.StatusRequestEntityTooLarge,
			"the file is larger than 16 MB, and no robot has a larger partition")
	}
	read, err := espimage.Read(file, n)
	if err != nil {
		return Image{}, contentFault(err)
	}
	image := newImage(read, slices.Clone(u.Boards), now)
	if u.SHA256 != "" && !strings.EqualFold(u.SHA256, image.SHA256) {
		return Image{}, refuse("wrong_sha256", http.StatusUnprocessableEntity,
			"the file's SHA-256 is %s, and not %s: it is another file, or it was damaged on its way",
			image.SHA256, clip(u.SHA256))
	}
	return image, image.check()
}

// uploadFault returns the error of Add or AddAsset for an error of copying the body to a file.
func uploadFault(err error) error {
	_, isFault := errors.AsType[*httpserver.Fault](err)
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case isFault, tooLarge:
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse("stalled", http.StatusRequestTimeout, "nothing arrived for 30 seconds")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(espimage.Truncated, http.StatusBadRequest, "the upload broke off")
	}
	return diskFault(fmt.Errorf("write the file: %w", err))
}

// contentFault converts a *espimage.Refusal to a *httpserver.Fault. It returns other errors unchanged.
func contentFault(err error) error {
	if refusal, ok := errors.AsType[*espimage.Refusal](err); ok {
		return refuse(refusal.Word, http.StatusUnprocessableEntity, "%w", refusal)
	}
	return err
}

// diskFault converts the error of a full disk to a *httpserver.Fault. It returns other errors unchanged.
func diskFault(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return refuse("disk_full", http.StatusInsufficientStorage,
			"the disk has no room for the file; remove images that are not needed any more")
	}
	return err
}

// verify checks the signature of an image. It returns false and no error if no signature is
// required, even if there is one.
func (f *Firmware) verify(sha, signature string) (bool, error) {
	if f.o.Signer == nil {
		return false, nil
	}
	if signature == "" {
		return false, refuse("no_signature", http.StatusForbidden,
			"this appliance requires a signature by the key in firmware.public_key: ed25519, of the 32 bytes of the file's SHA-256")
	}
	decoded, err := base64.StdEncoding.DecodeString(signature)
	digest, _ := hex.DecodeString(sha) // always valid hex
	if err != nil || !ed25519.Verify(f.o.Signer, digest, decoded) {
		return false, refuse("bad_signature", http.StatusForbidden,
			"the signature does not match the image and the key in firmware.public_key")
	}
	return true, nil
}

// checkNewImage returns a *httpserver.Fault if the catalogue is full, or if there are robots of the declared boards
// whose hardware is known, and none of them could run the image.
func (f *Firmware) checkNewImage(i Image) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.images[i.SHA256]; !ok && len(f.images) >= maxImages {
		return refuse("catalogue_full", http.StatusConflict, "there are already %d images; remove some that are no longer needed",
			maxImages)
	}
	return i.checkUnits(f.units)
}

// record stores the record of an image. info is the metadata of the image's file, which has been
// checked and renamed.
func (f *Firmware) record(i Image, info os.FileInfo) (Shown, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i.Added = f.afterChoices(i.Added)
	r := Record{Image: i}
	if existing, ok := f.images[i.SHA256]; ok {
		r = existing
		r.Signed = r.Signed || i.Signed
		r.Boards = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(existing.Boards), i.Boards...))))
	}
	if err := checkBoards(r.Boards); err != nil {
		return Shown{}, err
	}
	if err := f.o.Images.Put(i.SHA256, r); err != nil {
		if _, ok := f.images[i.SHA256]; !ok {
			err = errors.Join(err, os.Remove(f.path(i.SHA256))) // frees the space, as the disk may be full
		}
		return Shown{}, diskFault(fmt.Errorf("store the image: %w", err))
	}
	f.images[i.SHA256] = r
	f.checked[i.SHA256] = checkedFile{info: info} // replaces the result for an earlier file
	delete(f.checking, i.SHA256)
	f.publishChange(i.SHA256)
	f.o.Log.Info("an image was published", "sha256", i.SHA256, "project", i.Project, "version", i.Version, "boards", r.Boards)
	return f.describe(r), nil
}

// cleanUp removes incomplete uploads and records whose file is missing or has another size, and
// moves images without a record to another folder.
func (f *Firmware) cleanUp() error {
	files, err := os.ReadDir(f.o.Dir)
	if err != nil {
		return fmt.Errorf("read the folder for firmware: %w", err)
	}
	for _, file := range files {
		sha, isImage := strings.CutSuffix(file.Name(), imageExt)
		if _, hasRecord := f.images[sha]; file.Type().IsRegular() && isImage && isHash(sha) && !hasRecord {
			f.putAside(file.Name())
		}
	}
	for _, folder := range []string{"", AssetsFolder} {
		unfinished, _ := filepath.Glob(filepath.Join(f.o.Dir, folder, uploadName)) // finds nothing if the name of a folder above has characters of patterns
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
		if err := f.o.Images.Delete(sha); err != nil {
			return fmt.Errorf("remove an image without a file: %w", err)
		}
		f.o.Log.Error("the file of an image is missing or has another size, and the image was removed from the catalogue; publish it again", "sha256", sha, "version", r.Version)
		delete(f.images, sha)
	}
	return nil
}

// putAside moves the file of an image without a record to orphanedFolder. It logs the result and
// returns no error, because such a file does no harm.
func (f *Firmware) putAside(name string) {
	to := filepath.Join(f.o.Dir, orphanedFolder, name)
	err := os.MkdirAll(filepath.Dir(to), 0o750)
	if err == nil {
		err = os.Rename(filepath.Join(f.o.Dir, name), to)
	}
	if err == nil {
		err = errors.Join(store.SyncDirectory(filepath.Dir(to)), store.SyncDirectory(f.o.Dir))
	}
	if err != nil {
		f.o.Log.Warn("a file without a record in the catalogue cannot be moved to another folder", "file", filepath.Join(f.o.Dir, name), "to", to, "err", err)
		return
	}
	f.o.Log.Warn("a file without a record in the catalogue was moved to another folder; publish it again, or remove it", "file", to)
}
