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

// dist holds the files that bundle.sh has made, or only a .keep.
//
//go:embed all:dist
var dist embed.FS

// bundle is the set of files that the pages load.
type bundle struct {
	entries map[string]string // the script of each page, "app" -> "app-ABC.js"
	files   map[string]file   // by name
}

// file is an embedded file of the bundle, in gzip.
type file struct {
	name   string
	kind   string
	hashed bool // its name changes with its content
}

// openBundle reads the embedded bundle. It is empty, which is no error, in a program built without it.
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

// mustBundle is openBundle for a running program.
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

// open returns a file in gzip and its size. It is not copied before it is sent: there may be many
// clients, and slow ones.
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

// plain returns a file for a client that accepts no gzip.
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
