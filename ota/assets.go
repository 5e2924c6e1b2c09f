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

// Asset is an asset file that robots can download. The folder itself is the list.
type Asset struct {
	Name  string           `json:"name"`
	Size  int64            `json:"size"` // bytes
	Added time.Time        `json:"added"`
	Files []espimage.Asset `json:"files,omitempty"` // its files; only set by AddAsset
}

const (
	// assetFiles is the URL path of the asset files.
	assetFiles = "/xiaozhi/ota/assets/"
	// AssetsFolder is their folder, within the folder of the catalogue.
	AssetsFolder = "assets"
	// mostAssets bounds their number.
	mostAssets = 32
)

// assetName matches valid names: the same in a URL and in every file system, and never the
// name of an unfinished upload.
var assetName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`) })

var (
	errAssetName = &fault{"bad_name", http.StatusBadRequest,
		errors.New("an asset file's name is of up to 63 letters, digits, dots, hyphens and underscores, and begins with a letter or a digit")}
	errNoAsset = &fault{"unknown_asset", http.StatusNotFound, errors.New("there is no such asset file here")}
)

func (f *Firmware) assetPath(name string) string { return filepath.Join(f.o.Dir, AssetsFolder, name) }

// Assets lists the asset files by name.
func (f *Firmware) Assets() ([]Asset, error) {
	files, err := os.ReadDir(f.assetPath(""))
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

// AddAsset stores an asset file, replacing one with the same name. Errors have a code and a
// status. A file that is refused or incomplete leaves nothing behind. Downloads of the
// replaced file are completed.
func (f *Firmware) AddAsset(ctx context.Context, name string, body io.Reader) (Asset, error) {
	if !assetName().MatchString(name) {
		return Asset{}, errAssetName
	}
	var read espimage.Assets
	err := f.upload(ctx, f.assetPath(""), func(file *os.File) (string, error) {
		list, err := f.Assets()
		if err != nil {
			return "", err
		}
		if _, err := os.Lstat(f.assetPath(name)); err != nil && len(list) >= mostAssets {
			return "", &fault{"assets_full", http.StatusConflict,
				fmt.Errorf("there are %d asset files already; remove some that are not needed any more", mostAssets)}
		}
		n, err := io.Copy(file, io.LimitReader(body, espimage.MaxSize+1))
		if err != nil {
			return "", uploadFault(err)
		}
		read, err = espimage.ReadAssets(file, n)
		return f.assetPath(name), contentFault(err)
	}, func() error {
		f.changed(name)
		f.o.Log.Info("an asset file can be downloaded", "name", name, "bytes", read.Size)
		return nil
	})
	if err != nil {
		return Asset{}, err
	}
	return Asset{Name: name, Size: read.Size, Added: time.Now(), Files: read.Files}, nil
}

// RemoveAsset removes an asset file durably. Downloads of it are completed.
func (f *Firmware) RemoveAsset(name string) error {
	if !assetName().MatchString(name) {
		return errNoAsset
	}
	err := os.Remove(f.assetPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return errNoAsset
	}
	if err == nil {
		err = store.SyncDirectory(f.assetPath(""))
	}
	if err != nil {
		return fmt.Errorf("remove the asset file: %w", err)
	}
	f.changed(name)
	return nil
}

// AssetFor returns the path at which a robot can download an asset file for a day, which
// the firmware does at its next start. The firmware erases its present assets before it
// checks the size of the new ones, so a file larger than the reported partition is refused.
func (f *Firmware) AssetFor(id device.ID, name string, now time.Time) (path string, err error) {
	size, is := f.assetSize(name)
	if !is {
		return "", errNoAsset
	}
	f.mu.Lock()
	room := f.units[id].Assets
	f.mu.Unlock()
	if room > 0 && size > room {
		return "", &fault{espimage.TooLarge, http.StatusConflict,
			fmt.Errorf("%s has %d bytes, and the robot's partition for assets takes %d; it would lose what it has", name, size, room)}
	}
	return assetFiles + name + "?r=" + f.newTicket(assetTicket+name, id, now), nil
}

// assetTicket distinguishes the tickets of asset files from those of images.
const assetTicket = "assets/"

// assetSize returns the size of an asset file, if it exists.
func (f *Firmware) assetSize(name string) (bytes int64, is bool) {
	if !assetName().MatchString(name) {
		return 0, false
	}
	info, err := os.Lstat(f.assetPath(name))
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// downloadAsset sends an asset file as an image is sent.
func (f *Firmware) downloadAsset(w http.ResponseWriter, r *http.Request, name, ticket string) error {
	if !assetName().MatchString(name) {
		return errNoAsset
	}
	id, err := f.checkTicket(assetTicket+name, ticket, time.Now())
	if err != nil {
		return err
	}
	if _, is := f.assetSize(name); !is {
		return errNoAsset
	}
	return f.stream(w, r, id, f.assetPath(name), "")
}
