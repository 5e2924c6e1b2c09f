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

// manifestName is the name of the manifest in a bundle.
const manifestName = "manifest.json"

// Read reads a manifest. source is the path of a manifest, the path of a bundle (a folder
// or zip file with a manifest.json), or an https address (see Fetch).
func Read(ctx context.Context, client *http.Client, source string) (Manifest, error) {
	if strings.Contains(source, "://") {
		return Fetch(ctx, client, source)
	}
	info, err := os.Stat(source)
	if err != nil {
		return Manifest{}, fmt.Errorf("read a manifest: %w", err)
	}
	dir, name := filepath.Dir(source), filepath.Base(source)
	if info.IsDir() {
		dir, name = source, manifestName
	}
	root, err := os.OpenRoot(dir) // prevents links from leading out of the bundle
	if err != nil {
		return Manifest{}, fmt.Errorf("read a manifest: %w", err)
	}
	defer root.Close()
	if strings.EqualFold(filepath.Ext(name), ".zip") && !info.IsDir() {
		return readZip(root.FS(), name)
	}
	return readBundle(root.FS(), name)
}

// readBundle reads a manifest and the files that it names. name is the path of the manifest.
// It adds a remark about each skill in the bundle, because these are not imported.
func readBundle(files fs.FS, name string) (Manifest, error) {
	data, err := readFile(files, name)
	if err != nil {
		return Manifest{}, fmt.Errorf("read a manifest: %w", err)
	}
	dir := path.Dir(name)
	m, err := Parse(data, func(other string) ([]byte, error) { return readFile(files, path.Join(dir, other)) })
	for _, s := range m.Skills {
		folder := path.Clean(s.URI)
		if !fs.ValidPath(folder) {
			continue // an address, or a path outside of the bundle
		}
		if _, err := fs.Stat(files, path.Join(dir, folder, manifestName)); err == nil {
			m.addRemark("The skill in %s of the bundle is not imported: copy this folder into the appliance's directory of skills.", folder)
		}
	}
	return m, err
}

// readZip reads a bundle in a zip file. The zip file contains either the files of the
// bundle, or a folder with these files.
func readZip(files fs.FS, name string) (Manifest, error) {
	data, err := readFile(files, name)
	if err != nil {
		return Manifest{}, fmt.Errorf("read a manifest: %w", err)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Manifest{}, invalid(fmt.Errorf("%s is not a zip file", name))
	}
	for _, f := range z.File {
		if parts := strings.Split(f.Name, "/"); parts[len(parts)-1] == manifestName && len(parts) <= 2 {
			return readBundle(z, f.Name)
		}
	}
	return Manifest{}, invalid(fmt.Errorf("%s has no %s", name, manifestName))
}

// readFile reads a regular file of at most maxBytes bytes.
func readFile(files fs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return readBounded(f, name)
}

// readBounded reads r to its end. More than maxBytes bytes are an error. name is the name
// of r in errors.
func readBounded(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		err = invalid(fmt.Errorf("%s has more than %d bytes", name, maxBytes))
	}
	return data, err
}

// Fetch downloads the manifest at an https address, and the files that the manifest names,
// such as its instructions, from addresses relative to it.
func Fetch(ctx context.Context, client *http.Client, address string) (Manifest, error) {
	open, err := OpenAt(ctx, client, address)
	if err != nil {
		return Manifest{}, err
	}
	data, err := open("")
	if err != nil {
		return Manifest{}, err
	}
	return Parse(data, open)
}

// OpenAt returns an Open that downloads files from the server of an https address. Names are
// relative to the address; the name "" means the address itself. The Open follows at most
// three redirects, and only to https addresses.
func OpenAt(ctx context.Context, client *http.Client, address string) (Open, error) {
	base, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, invalid(fmt.Errorf("%.200q is no address", address))
	case base.Scheme == "ipfs":
		return nil, invalid(errors.New("ipfs:// addresses are not supported; download the manifest, and import the file"))
	case base.Scheme != "https" || base.Host == "" || base.User != nil:
		return nil, invalid(errors.New("the address of a manifest must begin with https:// and must not contain a password"))
	}
	c := *client
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" || len(via) > 3 {
			return errors.New("it redirects away from https, or too often")
		}
		return nil
	}
	return func(name string) ([]byte, error) {
		if name == "" {
			return fetchFile(ctx, &c, base) // with its query
		}
		return fetchFile(ctx, &c, base.ResolveReference(&url.URL{Path: name}))
	}, nil
}

// fetchFile downloads a file. If the server does not have it, the error wraps
// fs.ErrNotExist.
func fetchFile(ctx context.Context, client *http.Client, address *url.URL) ([]byte, error) {
	shown := address.Host + address.Path // for errors, without the query, which may contain a key
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", shown, err)
	}
	response, err := client.Do(request)
	if err != nil {
		var urlErr *url.Error
		if errors.As(err, &urlErr) {
			err = urlErr.Err // without the address
		}
		return nil, fmt.Errorf("fetch %s: %w", shown, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("fetch %s: %w", shown, fs.ErrNotExist)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch %s: the server returned %s", shown, response.Status)
	}
	return readBounded(response.Body, shown)
}
