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
	"slices"
	"strings"
)

// dist holds the files that bundle.sh has made. It holds only .keep in a program that is built without the bundle.
//
//go:embed all:dist
var dist embed.FS

// bundle holds the files that the pages load.
type bundle struct {
	entries map[string]string   // name of the script of each page, such as "app-ABC.js"; key: name of the page, such as "app"
	imports map[string][]string // names of the other scripts that each page needs until it shows its first view; key as in entries
	files   map[string]file     // key: name of the file
}

// file is an embedded file of the bundle, compressed with gzip.
type file struct {
	name   string // name of the compressed file
	kind   string // media type
	hashed bool   // the name contains a hash of the content, so a file with this name never changes
}

// output is a script of the bundle in esbuild's metafile.
type output struct {
	EntryPoint string
	Imports    []struct {
		Path, Kind string
		External   bool
	}
}

// needs returns the names of the scripts that run before this one. esbuild lists the imports of imports, too.
func (o output) needs() []string {
	var names []string
	for _, i := range o.Imports {
		if i.Kind == "import-statement" && !i.External {
			names = append(names, path.Base(i.Path))
		}
	}
	return names
}

// openBundle reads the embedded bundle. It returns an empty bundle in a program that was built without one.
func openBundle() (bundle, error) {
	b := bundle{map[string]string{}, map[string][]string{}, map[string]file{}}
	text, err := dist.ReadFile("dist/files.json")
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return b, err
	}
	var metafile struct {
		Outputs map[string]output `json:"outputs"`
	}
	if err := json.Unmarshal(text, &metafile); err != nil {
		return b, fmt.Errorf("read the bundle: %w", err)
	}
	hashed := map[string]bool{}
	for out, o := range metafile.Outputs {
		name := path.Base(out)
		hashed[name] = true
		// The scripts of the pages are directly in src. For esbuild, scripts that a page imports on demand are entry
		// points too, but they are in subfolders of src.
		if strings.HasSuffix(out, ".js") && path.Dir(o.EntryPoint) == "src" {
			entry := strings.TrimSuffix(path.Base(o.EntryPoint), ".ts")
			b.entries[entry] = name
			b.imports[entry] = o.needs()
			for _, i := range o.Imports {
				if home := metafile.Outputs[i.Path]; home.EntryPoint == "src/views/home.ts" {
					b.imports[entry] = append(append(b.imports[entry], path.Base(i.Path)), home.needs()...)
				}
			}
			slices.Sort(b.imports[entry])
			b.imports[entry] = slices.Compact(b.imports[entry])
		}
	}
	entries, err := dist.ReadDir("dist/assets")
	if err != nil {
		return b, fmt.Errorf("read the bundle: %w", err)
	}
	for _, entry := range entries {
		name, zipped := strings.CutSuffix(entry.Name(), ".gz")
		kind, known := kinds[path.Ext(name)]
		if !zipped || !known {
			return b, fmt.Errorf("gateway/owner/web/dist/assets holds %s, which bundle.sh does not make; run make clean build", entry.Name())
		}
		b.files[name] = file{entry.Name(), kind, hashed[name]}
	}
	return b, nil
}

func mustBundle() bundle {
	b, err := openBundle()
	if err != nil {
		panic(err) // cannot happen: a test reads the whole embedded bundle
	}
	return b
}

// kinds holds the media types of the files; key: extension.
var kinds = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".png": "image/png", ".txt": "text/plain; charset=utf-8"}

// open returns the compressed file and its size. The file is not copied into memory for a response, because there may
// be many slow clients.
func (f file) open() (fs.File, int64, error) {
	zipped, err := dist.Open("dist/assets/" + f.name)
	if err != nil {
		return nil, 0, fmt.Errorf("read the bundle: %w", err)
	}
	info, err := zipped.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("read the bundle: %w", err)
	}
	return zipped, info.Size(), nil
}

// plain returns the content of the file, for a client that does not accept gzip.
func (f file) plain() ([]byte, error) {
	zipped, _, err := f.open()
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(zipped)
	if err != nil {
		return nil, fmt.Errorf("read the bundle: %w", err)
	}
	return io.ReadAll(r)
}
