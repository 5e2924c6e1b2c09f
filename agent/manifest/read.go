package manifest

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// usual is the name of a bundle's manifest.
const usual = "manifest.json"

// Read reads the manifest of a file, of a folder or zip with a manifest.json, or of an
// https address, which client fetches once.
func Read(ctx context.Context, client *http.Client, place string) (Manifest, error) {
	if strings.Contains(place, "://") {
		return Fetch(ctx, client, place)
	}
	info, err := os.Stat(place)
	if err != nil {
		return Manifest{}, fmt.Errorf("read a manifest: %w", err)
	}
	dir, name := filepath.Dir(place), filepath.Base(place)
	if info.IsDir() {
		dir, name = place, usual
	}
	root, err := os.OpenRoot(dir) // prevents links from leading out of the bundle
	if err != nil {
		return Manifest{}, fmt.Errorf("read a manifest: %w", err)
	}
	defer root.Close()
	if strings.EqualFold(filepath.Ext(name), ".zip") && !info.IsDir() {
		return unzip(root.FS(), name)
	}
	return bundle(root.FS(), name)
}

// bundle reads the manifest of that name, and the files it names below its folder.
func bundle(files fs.FS, name string) (Manifest, error) {
	data, err := bounded(files, name)
	if err != nil {
		return Manifest{}, fmt.Errorf("read a manifest: %w", err)
	}
	dir := path.Dir(name)
	m, err := Parse(data, func(other string) ([]byte, error) { return bounded(files, path.Join(dir, other)) })
	for _, s := range m.Skills {
		at := path.Clean(s.URI)
		if !fs.ValidPath(at) {
			continue // an address, or outside the bundle
		}
		if _, wrong := fs.Stat(files, path.Join(dir, at, usual)); wrong == nil {
			m.addRemark("The skill in %s of the bundle is not imported with it: copy this folder into the appliance's directory of skills.", at)
		}
	}
	return m, err
}

func unzip(files fs.FS, name string) (Manifest, error) {
	data, err := bounded(files, name)
	if err != nil {
		return Manifest{}, fmt.Errorf("read a manifest: %w", err)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Manifest{}, fault(fmt.Errorf("%s is no zip", name))
	}
	for _, f := range z.File { // the folder itself may have been packed
		if parts := strings.Split(f.Name, "/"); parts[len(parts)-1] == usual && len(parts) <= 2 {
			return bundle(z, f.Name)
		}
	}
	return Manifest{}, fault(fmt.Errorf("%s has no %s", name, usual))
}

func bounded(files fs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", name)
	}
	return upToMost(f, name)
}

func upToMost(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, Most+1))
	if err == nil && len(data) > Most {
		err = fault(fmt.Errorf("%s has more than %d bytes", name, Most))
	}
	return data, err
}

// Fetch reads the manifest at an https address, and its instructions from the same
// server. An ipfs:// address is an error.
func Fetch(ctx context.Context, client *http.Client, address string) (Manifest, error) {
	at, err := url.Parse(address)
	switch {
	case err != nil:
		return Manifest{}, fault(fmt.Errorf("%.200q is no address", address))
	case at.Scheme == "ipfs":
		return Manifest{}, fault(errors.New("ipfs:// is not read here; download the manifest, and import the file"))
	case at.Scheme != "https" || at.Host == "" || at.User != nil:
		return Manifest{}, fault(errors.New("the address of a manifest begins with https:// and holds no password"))
	}
	c := *client
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" || len(via) > 3 {
			return errors.New("it leads away from https, or too far")
		}
		return nil
	}
	data, err := fetchFile(ctx, &c, at)
	if err != nil {
		return Manifest{}, err
	}
	return Parse(data, func(name string) ([]byte, error) {
		return fetchFile(ctx, &c, at.ResolveReference(&url.URL{Path: name}))
	})
}

func fetchFile(ctx context.Context, client *http.Client, at *url.URL) ([]byte, error) {
	shown := at.Host + at.Path // without the query, which may contain a key
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", shown, err)
	}
	response, err := client.Do(request)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, fmt.Errorf("fetch %s: %w", shown, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("fetch %s: %w", shown, fs.ErrNotExist)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch %s: the server answers %s", shown, response.Status)
	}
	return upToMost(response.Body, shown)
}
