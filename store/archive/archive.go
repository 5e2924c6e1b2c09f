// Package archive makes and restores backups of a data directory: one tar with a
// manifest, the database, the settings and the files of a folder.
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

// A backup is a tar with a manifest first, followed by the files that it lists: the
// database, the settings, and the files of a folder. Old backups have no
// settings; restoring one leaves the present settings.
const (
	manifestName  = "manifest.json"
	databaseName  = "perch.db"
	settingsName  = "settings.yaml"
	archiveFormat = 1
)

// Limits of a backup, because its source is not trusted.
const (
	mostDatabase = 4 << 30 // bytes
	mostArchived = 256     // files; the catalogue has less than half as many
)

// Manifest lists what a backup holds. It contains no secret.
type Manifest struct {
	Format    int       `json:"format"`
	Perch     string    `json:"perch"`  // the version that made it
	Schema    int       `json:"schema"` // of the database
	Created   time.Time `json:"created"`
	Appliance string    `json:"appliance"` // its id
	Files     []File    `json:"files"`
}

// File is a file in a backup.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // in hex
}

// Folder is a folder of the data directory whose files belong in a backup, as described by the
// package that owns it.
type Folder struct {
	Name  string   // in the data directory
	Below []string // subfolders with files for the backup
	// Allowed returns the largest size of a file in bytes and, if its name contains it, its SHA-256
	// hash in hex. name is relative to the folder. ok is false for a file that no backup contains.
	Allowed func(name string) (maxSize int64, sha256 string, ok bool)
	Table   string                  // a table whose records have files in the folder
	FileOf  func(key string) string // returns the name of a record's file
}

// allowed is Allowed for a name in the data directory.
func (l Folder) allowed(name string) (maxSize int64, sha256 string, ok bool) {
	if name, ok = strings.CutPrefix(name, l.Name+"/"); !ok {
		return 0, "", false
	}
	return l.Allowed(name)
}

// list returns the names, in the data directory, of the files for a backup.
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

var hexHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

func badBackup(format string, args ...any) error {
	return store.NewShown("bad_backup", http.StatusUnprocessableEntity,
		"this is no backup of Perch's, or it is damaged: "+fmt.Sprintf(format, args...))
}

// check rejects an invalid manifest. A valid one names only permitted files, each
// once, and none above its size limit.
func (m Manifest) check(folder Folder) error {
	if m.Format > archiveFormat {
		return store.NewShown("newer_backup", http.StatusUnprocessableEntity,
			fmt.Sprintf("the backup was made by a newer Perch (%.40q, format %d); install that version, and restore it there", m.Perch, m.Format))
	}
	if m.Format != archiveFormat || len(m.Files) > mostArchived {
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

func (f File) check(folder Folder) error {
	most, hash, ok := folder.allowed(f.Name)
	switch {
	case f.Name == databaseName:
		most = mostDatabase
	case f.Name == settingsName:
		most = limit.File
	case !ok:
		return badBackup("a backup cannot contain %.100q", f.Name)
	}
	switch {
	case f.Size < 0 || f.Size > most:
		return badBackup("%s cannot have %d bytes", f.Name, f.Size)
	case !hexHash().MatchString(f.SHA256):
		return badBackup("%s has an invalid hash", f.Name)
	case hash != "" && hash != f.SHA256:
		return badBackup("%s is not the file that its name says", f.Name)
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

// Plain returns the manifest with texts fit for one line.
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

// Backup is a backup to be written. Its files are open, so that none can disappear.
type Backup struct {
	Manifest Manifest
	text     []byte              // of the manifest
	files    map[string]*os.File // by their names in the backup
}

// Close closes the files.
func (p *Backup) Close() {
	for _, f := range p.files {
		_ = f.Close() // it was only read
	}
}

// Size returns the size of the tar.
func (p *Backup) Size() int64 {
	const block = 512
	padded := func(n int64) int64 { return block + (n+block-1)/block*block }
	n := padded(int64(len(p.text)))
	for _, f := range p.Manifest.Files {
		n += padded(f.Size)
	}
	return n + 2*block
}

// Write writes the tar. Its memory use does not depend on the files.
func (p *Backup) Write(ctx context.Context, w io.Writer) error {
	t := tar.NewWriter(w)
	head := func(name string, size int64) error {
		return t.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: p.Manifest.Created, Format: tar.FormatUSTAR,
			Typeflag: tar.TypeReg})
	}
	err := head(manifestName, int64(len(p.text)))
	if err == nil {
		_, err = t.Write(p.text)
	}
	for _, f := range p.Manifest.Files {
		if err == nil {
			err = head(f.Name, f.Size)
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

func (s contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// unpack reads a whole backup. After it has checked the manifest it calls accept, and writes
// each file to the writer that create returns, which it closes. Errors in the backup have a
// code and a status.
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
	wanted := map[string]File{}
	for _, f := range m.Files {
		wanted[f.Name] = f
	}
	for {
		head, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return m, unreadableBackup(err)
		}
		f, there := wanted[head.Name]
		if !there || head.Typeflag != tar.TypeReg || head.Size != f.Size {
			return m, badBackup("%.100q is not what its manifest says", head.Name)
		}
		delete(wanted, head.Name)
		if err := unpackFile(t, f, create); err != nil {
			return m, err
		}
	}
	for name := range wanted {
		return m, badBackup("%s is missing", name)
	}
	return m, nil
}

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
		return diskFault(fmt.Errorf("keep %s: %w", f.Name, err))
	case n != f.Size || hex.EncodeToString(hash.Sum(nil)) != f.SHA256:
		return badBackup("%s is not what its manifest says", f.Name)
	}
	return nil
}

// readErrors distinguishes errors of reading from those of writing.
type readErrors struct {
	io.Reader
	err error
}

func (s *readErrors) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// unreadableBackup distinguishes a damaged backup from an incomplete transmission.
func unreadableBackup(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return store.NewShown("stalled", http.StatusRequestTimeout, "nothing arrived for 30 seconds")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badBackup("it ends in the middle")
	case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrFieldTooLong):
		return badBackup("it is no tar file")
	}
	return fmt.Errorf("read the backup: %w", err)
}

// DatabasePath returns the path of the database of a data directory.
func DatabasePath(data string) string { return filepath.Join(data, databaseName) }

// Directory is a data directory to back up or restore.
type Directory struct {
	Path       string
	Perch      string            // version of this program
	Migrations []store.Migration // known to this program
	Folder     Folder
	Outdated   []string // files that a restore removes, because they belong to the previous database
	Log        *slog.Logger
}

// FolderFiles returns the number of the folder's files for a backup, or 0 if it cannot be read.
func (d Directory) FolderFiles() int {
	names, _ := d.Folder.list(d.Path)
	return len(names)
}
