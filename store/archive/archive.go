// Package archive makes and restores backups of Perch's data directory. A backup is a tar with a
// manifest, the database, the settings and the files of one folder, the firmware.
package archive

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"perch/limit"
	"perch/plain"
	"perch/store"
)

// Names of files in a backup, and its format. The manifest comes first, followed by the files that it lists. Old
// backups have no settings; restoring one does not change the current settings.
const (
	manifestName  = "manifest.json"
	databaseName  = "perch.db"
	settingsName  = "settings.yaml"
	archiveFormat = 1 // version of the format of backups
)

// Limits of a backup, which comes from an untrusted source.
const (
	maxDatabase = 4 << 30 // bytes
	maxFiles    = 256     // more than twice what the firmware catalogue can hold
)

// Manifest lists the files of a backup. It contains no secret.
type Manifest struct {
	Format    int       `json:"format"` // archiveFormat
	Perch     string    `json:"perch"`  // version of Perch that made the backup
	Schema    int       `json:"schema"` // schema version of the database
	Created   time.Time `json:"created"`
	Appliance string    `json:"appliance"` // ID of the appliance
	Files     []File    `json:"files"`
}

// File is a file in a backup.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // hexadecimal
}

// Folder describes a folder of the data directory whose files belong in a backup.
type Folder struct {
	Name  string   // path in the data directory
	Below []string // subfolders that also have files for the backup
	// Allowed reports whether a backup may contain the file with a name, which is relative to the
	// folder. It returns the maximum size in bytes and, if the name contains the SHA-256 hash of the
	// file, that hash in hexadecimal.
	Allowed func(name string) (maxSize int64, sha256 string, ok bool)
	Table   string                  // table of the database whose records have files in the folder
	FileOf  func(key string) string // returns the name of the file of a record, relative to the folder
}

// allowed calls Allowed for a name that is relative to the data directory.
func (l Folder) allowed(name string) (maxSize int64, sha256 string, ok bool) {
	if name, ok = strings.CutPrefix(name, l.Name+"/"); !ok {
		return 0, "", false
	}
	return l.Allowed(name)
}

// list returns the names of the folder's files for a backup, relative to the data directory.
func (l Folder) list(data string) (names []string, err error) {
	for _, folder := range append([]string{""}, l.Below...) {
		folder = path.Join(l.Name, folder)
		entries, err := os.ReadDir(filepath.Join(data, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read the folder %s: %w", l.Name, err)
		}
		for _, e := range entries {
			name := folder + "/" + e.Name()
			if _, _, ok := l.allowed(name); ok && e.Type().IsRegular() {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// hexHash matches a SHA-256 hash.
var hexHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// badBackup returns the error for invalid content of a backup.
func badBackup(format string, args ...any) error {
	return store.NewShown("bad_backup", http.StatusUnprocessableEntity,
		"this is not a backup of Perch, or it is damaged: "+fmt.Sprintf(format, args...))
}

// check returns an error unless the manifest is valid: it lists the database and only allowed
// files, each once and within its size limit.
func (m Manifest) check(folder Folder) error {
	if m.Format > archiveFormat {
		return store.NewShown("newer_backup", http.StatusUnprocessableEntity,
			fmt.Sprintf("the backup was made by a newer Perch (%.40q, format %d); install that version, and restore it there", m.Perch, m.Format))
	}
	if m.Format != archiveFormat || len(m.Files) > maxFiles {
		return badBackup("its manifest has format %d and %d files", m.Format, len(m.Files))
	}
	names := map[string]bool{}
	for _, f := range m.Files {
		if err := f.check(folder); err != nil {
			return err
		}
		if names[f.Name] {
			return badBackup("%s is in it twice", f.Name)
		}
		names[f.Name] = true
	}
	if !names[databaseName] {
		return badBackup("it has no %s", databaseName)
	}
	return nil
}

// check returns an error unless a backup may contain the file.
func (f File) check(folder Folder) error {
	maxSize, hash, ok := folder.allowed(f.Name)
	switch {
	case f.Name == databaseName:
		maxSize = maxDatabase
	case f.Name == settingsName:
		maxSize = limit.File
	case !ok:
		return badBackup("a backup cannot contain %.100q", f.Name)
	}
	switch {
	case f.Size < 0 || f.Size > maxSize:
		return badBackup("%s cannot have %d bytes", f.Name, f.Size)
	case !hexHash().MatchString(f.SHA256):
		return badBackup("%s has an invalid hash", f.Name)
	case hash != "" && hash != f.SHA256:
		return badBackup("%s has another hash than its name", f.Name)
	}
	return nil
}

// Bytes returns the total size of the files.
func (m Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// Plain returns a copy of the manifest whose texts are short and safe to display in one line.
func (m Manifest) Plain() Manifest {
	m.Perch, m.Appliance = plain.Clip(plain.Text(m.Perch), 60), plain.Clip(plain.Text(m.Appliance), 60)
	return m
}

// String describes the backup in one line.
func (m Manifest) String() string {
	m = m.Plain()
	return fmt.Sprintf("made %s by Perch %s on appliance %s; %d files, %.1f MB", m.Created.Local().Format(time.DateTime),
		m.Perch, m.Appliance, len(m.Files), float64(m.Bytes())/1e6)
}

// Backup is a backup that is ready to be written. Its files are open, so that the backup stays complete
// even if files are removed from the data directory.
type Backup struct {
	Manifest Manifest
	text     []byte              // the manifest in JSON
	files    map[string]*os.File // key: name in the backup
}

// Close closes the files.
func (p *Backup) Close() {
	for _, f := range p.files {
		_ = f.Close() // an error does not matter: the files are not needed any more
	}
}

// Size returns the size of the tar in bytes.
func (p *Backup) Size() int64 {
	const block = 512
	padded := func(n int64) int64 { return block + (n+block-1)/block*block } // header and content
	n := padded(int64(len(p.text)))
	for _, f := range p.Manifest.Files {
		n += padded(f.Size)
	}
	return n + 2*block // a tar ends with two empty blocks
}

// Write writes the tar to w. Its memory use does not depend on the size of the files.
func (p *Backup) Write(ctx context.Context, w io.Writer) error {
	t := tar.NewWriter(w)
	writeHeader := func(name string, size int64) error {
		return t.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: p.Manifest.Created, Format: tar.FormatUSTAR,
			Typeflag: tar.TypeReg})
	}
	err := writeHeader(manifestName, int64(len(p.text)))
	if err == nil {
		_, err = t.Write(p.text)
	}
	for _, f := range p.Manifest.Files {
		if err == nil {
			err = writeHeader(f.Name, f.Size)
		}
		if err == nil {
			_, err = io.CopyN(t, contextReader{ctx, io.NewSectionReader(p.files[f.Name], 0, f.Size)}, f.Size)
		}
	}
	if err == nil {
		err = t.Close()
	}
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

// contextReader is a reader that fails when its context ends.
type contextReader struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// unpack reads a whole backup. It checks the manifest and calls accept with the manifest. Then, for each
// file, it calls create, writes the content to the result and closes the result. Errors for an invalid
// backup are of type store.Shown.
func unpack(r io.Reader, folder Folder, accept func(Manifest) error, create func(File) (io.WriteCloser, error)) (m Manifest, err error) {
	t := tar.NewReader(r)
	if m, err = readManifest(t); err != nil {
		return m, err
	}
	if err := m.check(folder); err != nil {
		return m, err
	}
	if err := accept(m); err != nil {
		return m, err
	}
	missing := map[string]File{}
	for _, f := range m.Files {
		missing[f.Name] = f
	}
	for {
		head, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return m, unreadableBackup(err)
		}
		f, ok := missing[head.Name]
		if !ok || head.Typeflag != tar.TypeReg || head.Size != f.Size {
			return m, badBackup("%.100q does not match the manifest", head.Name)
		}
		delete(missing, head.Name)
		if err := unpackFile(t, f, create); err != nil {
			return m, err
		}
	}
	for name := range missing {
		return m, badBackup("%s is missing", name)
	}
	return m, nil
}

// readManifest reads the manifest, which is the first file of the tar.
func readManifest(t *tar.Reader) (m Manifest, err error) {
	head, err := t.Next()
	if err == io.EOF {
		return m, badBackup("it is empty")
	}
	if err != nil {
		return m, unreadableBackup(err)
	}
	if head.Name != manifestName || head.Typeflag != tar.TypeReg || head.Size > limit.List {
		return m, badBackup("it does not begin with a %s", manifestName)
	}
	text, err := io.ReadAll(io.LimitReader(t, limit.List))
	if err != nil {
		return m, unreadableBackup(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, badBackup("its manifest cannot be read: %v", err)
	}
	return m, nil
}

// unpackFile copies the current file of the tar to the result of create, and compares it with f.
func unpackFile(t *tar.Reader, f File, create func(File) (io.WriteCloser, error)) error {
	file, err := create(f)
	if err != nil {
		return err
	}
	hash, source := sha256.New(), &readErrors{Reader: t}
	n, err := io.Copy(io.MultiWriter(file, hash), source)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	switch {
	case source.err != nil:
		return unreadableBackup(source.err)
	case err != nil:
		return diskFault(fmt.Errorf("store %s: %w", f.Name, err))
	case n != f.Size || hex.EncodeToString(hash.Sum(nil)) != f.SHA256:
		return badBackup("%s does not match the manifest", f.Name)
	}
	return nil
}

// readErrors stores the error of its Reader, to distinguish it from errors of writing.
type readErrors struct {
	io.Reader
	err error // other than io.EOF
}

// Read implements io.Reader.
func (r *readErrors) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// unreadableBackup converts an error of reading the tar, which may be caused by an invalid backup, a
// slow client or a broken connection. For the first two it returns a store.Shown.
func unreadableBackup(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return store.NewShown("stalled", http.StatusRequestTimeout, "nothing arrived for 30 seconds")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badBackup("it ends in the middle")
	case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrFieldTooLong):
		return badBackup("it is not a tar file")
	}
	return fmt.Errorf("read the backup: %w", err)
}

// DatabasePath returns the path of the database of a data directory.
func DatabasePath(data string) string { return filepath.Join(data, databaseName) }

// Directory is a data directory to back up or restore.
type Directory struct {
	Path       string
	Perch      string            // version of this program
	Migrations []store.Migration // all migrations of this program
	Folder     Folder
	Outdated   []string // names of files that a restore removes, because they belong to the previous database
	Log        *slog.Logger
}

// FolderFiles returns the number of the folder's files for a backup, or 0 if the folder cannot be read.
func (d Directory) FolderFiles() int {
	names, _ := d.Folder.list(d.Path)
	return len(names)
}
