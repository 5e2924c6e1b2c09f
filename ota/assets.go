package ota

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"perch/device"
	"perch/ota/espimage"
	"perch/store"
)

// Asset is an asset file, which contains fonts, wake words and faces for a robot to download.
type Asset struct {
	Name  string           `json:"name"`
	Size  int64            `json:"size"` // bytes
	Added time.Time        `json:"added"`
	Files []espimage.Asset `json:"files,omitempty"` // the files in the asset file; nil unless returned by AddAsset
}

const (
	// assetPath is the URL path of the asset files.
	assetPath = "/xiaozhi/ota/assets/"
	// AssetsFolder is the folder of the asset files within the folder of the catalogue.
	AssetsFolder = "assets"
	// maxAssets is the largest number of asset files.
	maxAssets = 32
)

// assetName matches valid names of asset files. A valid name needs no escaping in a URL, is
// allowed in every file system, and differs from the names of unfinished uploads.
var assetName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`) })

var (
	errAssetName = refuse("bad_name", http.StatusBadRequest,
		"the name of an asset file has up to 63 letters, digits, dots, hyphens and underscores, and begins with a letter or a digit")
	errNoAsset = refuse("unknown_asset", http.StatusNotFound, "there is no such asset file here")
)

// assetFile returns the path of an asset file, or of the folder if name is empty.
func (f *Firmware) assetFile(name string) string { return filepath.Join(f.o.Dir, AssetsFolder, name) }

// Assets returns the asset files, sorted by name.
func (f *Firmware) Assets() ([]Asset, error) {
	files, err := os.ReadDir(f.assetFile(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the folder for asset files: %w", err)
	}
	list := []Asset{}
	for _, file := range files {
		info, err := file.Info()
		if err == nil && info.Mode().IsRegular() && assetName().MatchString(file.Name()) {
			list = append(list, Asset{Name: file.Name(), Size: info.Size(), Added: info.ModTime()})
		}
	}
	return list, nil
}

// AddAsset stores an asset file. It replaces a file with the same name; running downloads of
// that file are completed. A file that is invalid or incomplete is not stored. The error is a
// *httpserver.Fault, an *http.MaxBytesError, or an internal error.
func (f *Firmware) AddAsset(ctx context.Context, name string, body io.Reader) (Asset, error) {
	if !assetName().MatchString(name) {
		return Asset{}, errAssetName
	}
	var read espimage.Assets
	err := f.upload(ctx, f.assetFile(""), func(file *os.File) (string, error) {
		list, err := f.Assets()
		if err != nil {
			return "", err
		}
		if _, err := os.Lstat(f.assetFile(name)); err != nil && len(list) >= maxAssets {
			return "", refuse("assets_full", http.StatusConflict,
				"there are already %d asset files; remove some that are no longer needed", maxAssets)
		}
		n, err := io.Copy(file, io.LimitReader(body, espimage.MaxSize+1))
		if err != nil {
			return "", uploadFault(err)
		}
		read, err = espimage.ReadAssets(file, n)
		return f.assetFile(name), contentFault(err)
	}, func() error {
		f.publishChange(name)
		f.o.Log.Info("an asset file can be downloaded", "name", name, "bytes", read.Size)
		return nil
	})
	if err != nil {
		return Asset{}, err
	}
	return Asset{Name: name, Size: read.Size, Added: time.Now(), Files: read.Files}, nil
}

// RemoveAsset removes an asset file. After it has returned nil, a power cut does not bring the file back.
// Running downloads are completed.
func (f *Firmware) RemoveAsset(name string) error {
	if !assetName().MatchString(name) {
		return errNoAsset
	}
	err := os.Remove(f.assetFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return errNoAsset
	}
	if err == nil {
		err = store.SyncDirectory(f.assetFile(""))
	}
	if err != nil {
		return fmt.Errorf("remove the asset file: %w", err)
	}
	f.publishChange(name)
	return nil
}

// AssetFor returns the path and query of a URL at which the robot can download an asset file. The
// URL is valid for ticketLifetime. The firmware downloads the file at its next start, and erases the
// present assets before it checks the size of the new ones. Therefore AssetFor returns an error for a
// file that is too large for the robot's partition, if the size of the partition is known.
func (f *Firmware) AssetFor(id device.ID, name string, now time.Time) (path string, err error) {
	size, ok := f.assetSize(name)
	if !ok {
		return "", errNoAsset
	}
	f.mu.Lock()
	partition := f.units[id].Assets
	f.mu.Unlock()
	if partition > 0 && size > partition {
		return "", refuse(espimage.TooLarge, http.StatusConflict,
			"%s has %d bytes, but the robot's partition for assets has only %d; the robot would lose its present assets", name, size, partition)
	}
	return assetPath + name + "?r=" + f.ticket(assetTicket+name, id, now), nil
}

// assetTicket precedes the name of an asset file in a ticket, so that a ticket for an asset file
// is never valid for an image.
const assetTicket = "assets/"

// assetSize returns the size of an asset file. ok is false if there is no such file or name is invalid.
func (f *Firmware) assetSize(name string) (bytes int64, ok bool) {
	if !assetName().MatchString(name) {
		return 0, false
	}
	info, err := os.Lstat(f.assetFile(name))
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// downloadAsset sends an asset file, as download sends an image.
func (f *Firmware) downloadAsset(w http.ResponseWriter, r *http.Request, name, ticket string) error {
	if !assetName().MatchString(name) {
		return errNoAsset
	}
	id, err := f.checkTicket(assetTicket+name, ticket, time.Now())
	if err != nil {
		return err
	}
	if _, ok := f.assetSize(name); !ok {
		return errNoAsset
	}
	return f.stream(w, r, id, f.assetFile(name), "")
}
