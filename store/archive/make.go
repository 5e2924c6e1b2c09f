package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"perch/store"
)

// backupTries bounds the attempts to find the file of every record of the folder's table,
// since files may be added and removed at any time.
const backupTries = 3

// Running makes a backup while an appliance uses the directory and has its database open.
func (d Directory) Running(ctx context.Context, db *store.DB) (*Backup, error) {
	return d.pack(ctx, db.Backup)
}

// Stopped makes a backup while no appliance uses the directory.
func (d Directory) Stopped(ctx context.Context) (*Backup, error) {
	return d.pack(ctx, func(w io.Writer) error { return store.BackupFile(DatabasePath(d.Path), lockWithin, w) })
}

// pack makes a backup with the database that database writes. A file is created before its record
// and removed after it, so the folder is read before and after the database is copied.
func (d Directory) pack(ctx context.Context, database func(io.Writer) error) (*Backup, error) {
	for try := 1; ; try++ {
		p := &Backup{files: map[string]*os.File{}}
		lost, err := d.collect(ctx, p, database)
		if err != nil {
			p.Close()
			return nil, err
		}
		if len(lost) == 0 {
			return p, nil
		}
		if try == backupTries {
			d.Log.Warn("files are missing, and are not in the backup", "folder", d.Folder.Name, "records", lost)
			return p, nil
		}
		p.Close() // a file was just added or removed
	}
}

// collect opens the files of a backup. It returns the records whose files are missing.
func (d Directory) collect(ctx context.Context, p *Backup, database func(io.Writer) error) (lost []string, err error) {
	if err := d.openFolder(p.files); err != nil {
		return nil, err
	}
	if p.files[settingsName], err = openSettings(d.Path); err != nil {
		return nil, err
	}
	spool, err := unnamedFile(d.Path)
	if err != nil {
		return nil, diskFault(fmt.Errorf("write a copy of the database: %w", err))
	}
	p.files[databaseName] = spool
	if err := database(spool); err != nil {
		return nil, diskFault(err)
	}
	if err := d.openFolder(p.files); err != nil {
		return nil, err
	}
	p.Manifest = Manifest{Format: archiveFormat, Perch: d.Perch, Created: time.Now().UTC().Truncate(time.Second)}
	found, err := store.Check(spool, store.Options{Migrations: d.Migrations}, func(table, key string, value []byte) error {
		switch {
		case table == "appliance" && key == "id":
			return json.Unmarshal(value, &p.Manifest.Appliance)
		case table == d.Folder.Table && p.files[path.Join(d.Folder.Name, d.Folder.FileOf(key))] == nil:
			lost = append(lost, key)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("check the copy of the database: %w", err)
	}
	p.Manifest.Schema = found.Schema
	return lost, p.inventory(ctx, d.Folder, d.Log)
}

// inventory adds the files to the manifest, the database first.
func (p *Backup) inventory(ctx context.Context, folder Folder, log *slog.Logger) (err error) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(p.files)), func(name string) bool { return name == databaseName })
	names = append([]string{databaseName}, names...)
	for _, name := range names {
		hash := sha256.New()
		n, err := io.Copy(hash, contextReader{ctx, io.NewSectionReader(p.files[name], 0, 1<<62)})
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		f := File{Name: name, Size: n, SHA256: hex.EncodeToString(hash.Sum(nil))}
		if err := f.check(folder); err != nil {
			log.Warn("a file is not in the backup, for it is damaged; remove it, and publish it again", "file", name, "err", err)
			continue
		}
		p.Manifest.Files = append(p.Manifest.Files, f)
	}
	if err := p.Manifest.check(folder); err != nil {
		return err
	}
	p.text, err = json.MarshalIndent(p.Manifest, "", "  ")
	return err
}

// openSettings opens the settings, or an empty file if they are missing.
func openSettings(data string) (*os.File, error) {
	f, err := os.Open(filepath.Join(data, settingsName))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = unnamedFile(data)
	}
	if err != nil {
		return nil, diskFault(fmt.Errorf("read the settings: %w", err))
	}
	return f, nil
}

// openFolder opens the files of the folder that are not open yet.
func (d Directory) openFolder(files map[string]*os.File) error {
	names, err := d.Folder.list(d.Path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if files[name] != nil {
			continue
		}
		f, err := os.Open(filepath.Join(d.Path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just been removed
		}
		if err != nil {
			return fmt.Errorf("read the folder %s: %w", d.Folder.Name, err)
		}
		files[name] = f
	}
	return nil
}

// unnamedFile creates a file in the data directory that disappears when it is closed. If the
// directory cannot be written, it uses a temporary directory, so that a failing card can be
// backed up.
func unnamedFile(data string) (*os.File, error) {
	f, err := os.CreateTemp(data, ".backup-*")
	if err != nil {
		f, err = os.CreateTemp("", ".perch-backup-*")
	}
	if err == nil {
		err = os.Remove(f.Name())
	}
	return f, err
}

// WriteFile writes a backup to a file that only its owner can read. The file is complete or
// absent.
func WriteFile(path string, force bool, write func(io.Writer) (Manifest, error)) (m Manifest, err error) {
	if info, err := os.Lstat(path); err == nil && (info.IsDir() || !force) {
		return m, alreadyThere(path, info.IsDir())
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".perch-backup-*.tmp") // mode 0600
	if err != nil {
		return m, fmt.Errorf("write the backup: %w", err)
	}
	defer os.Remove(f.Name()) // fails after a rename, which is fine
	m, err = write(f)
	if err != nil {
		return m, errors.Join(err, f.Close())
	}
	if err = errors.Join(f.Sync(), f.Close()); err == nil {
		if force {
			err = os.Rename(f.Name(), path)
		} else {
			err = nameNew(f.Name(), path)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return m, alreadyThere(path, false)
	}
	if err != nil {
		return m, fmt.Errorf("write the backup: %w", err)
	}
	return m, store.SyncDirectory(filepath.Dir(path))
}

func alreadyThere(path string, folder bool) error {
	if folder {
		return fmt.Errorf("%s is a folder; name a file in it", path)
	}
	return fmt.Errorf("%s is there already; name another file, or replace it with --force", path)
}

// nameNew renames a file to a name that must not exist. On a file system without links, as on
// most sticks, another process may create that name at the same moment.
func nameNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// Receive copies a backup with files of a folder from r to w, and checks it against its manifest.
func Receive(r io.Reader, folder Folder, w io.Writer) (Manifest, error) {
	received := io.TeeReader(r, w)
	m, err := unpack(received, folder, func(Manifest) error { return nil }, func(File) (io.WriteCloser, error) { return discarded{io.Discard}, nil })
	if err != nil {
		return m, err
	}
	if _, err = io.Copy(io.Discard, received); err != nil { // the end of the tar
		return m, fmt.Errorf("read the backup: %w", err)
	}
	return m, nil
}

// discarded is a file whose content is dropped.
type discarded struct{ io.Writer }

func (discarded) Close() error { return nil }
