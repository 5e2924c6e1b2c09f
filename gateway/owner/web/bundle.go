package web

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// dist is what bundle.sh has made; where it did not run, there is only a .keep.
//
//go:embed all:dist
var dist embed.FS

// bundle is what the pages are made of.
type bundle struct {
	entries map[string]string // the script of each page, "app" -> "app-ABC.js"
	files   map[string]file   // by name
}

// file is one of the bundle, as it is embedded.
type file struct {
	name   string
	kind   string
	hashed bool // its name changes with what is in it
}

// openBundle reads what is embedded. A program without a bundle has none, which is
// no error.
func openBundle() (bundle, error) {
	b := bundle{map[string]string{}, map[string]file{}}
	text, err := dist.ReadFile("dist/files.json")
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return b, err
	}
	var made struct {
		Outputs map[string]struct {
			EntryPoint string `json:"entryPoint"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal(text, &made); err != nil {
		return b, fmt.Errorf("read what was bundled: %w", err)
	}
	hashed := map[string]bool{}
	for out, o := range made.Outputs {
		name := path.Base(out)
		hashed[name] = true
		// What is imported later is an entry to esbuild, too: views/robot.ts is no page.
		if strings.HasSuffix(out, ".js") && path.Dir(o.EntryPoint) == "src" {
			b.entries[strings.TrimSuffix(path.Base(o.EntryPoint), ".ts")] = name
		}
	}
	all, err := dist.ReadDir("dist/assets")
	if err != nil {
		return b, fmt.Errorf("read what was bundled: %w", err)
	}
	for _, one := range all {
		name, zipped := strings.CutSuffix(one.Name(), ".gz")
		kind, known := kinds[path.Ext(name)]
		if !zipped || !known {
			return b, fmt.Errorf("gateway/owner/web/dist/assets holds %s, which bundle.sh does not make; run make clean build", one.Name())
		}
		b.files[name] = file{one.Name(), kind, hashed[name]}
	}
	return b, nil
}

// mustBundle is it for those who cannot do without.
func mustBundle() bundle {
	b, err := openBundle()
	if err != nil {
		panic(err) // it is compiled in, and a test reads all of it
	}
	return b
}

// kinds are the media types of a bundle's files.
var kinds = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8"}

// open is a file as it is embedded, in gzip's form, and its size. Nothing of it is copied
// before it is sent: whoever asks may take a long time to read it, and be many.
func (f file) open() (fs.File, int64, error) {
	zipped, err := dist.Open("dist/assets/" + f.name)
	if err != nil {
		return nil, 0, fmt.Errorf("read what was bundled: %w", err)
	}
	about, err := zipped.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("read what was bundled: %w", err)
	}
	return zipped, about.Size(), nil
}

// plain is a file for a client that takes no gzip.
func (f file) plain() ([]byte, error) {
	zipped, _, err := f.open()
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(zipped)
	if err != nil {
		return nil, fmt.Errorf("read what was bundled: %w", err)
	}
	return io.ReadAll(r)
}
