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

// maxAttempts is the maximum number of attempts to make a backup that has the file of every record of the
// folder's table. An attempt may miss a file because files are added and removed at any time.
const maxAttempts = 3

// BackupRunning makes a backup while an appliance uses the directory and has its database open.
func (d Directory) BackupRunning(ctx context.Context, db *store.DB) (*Backup, error) {
	return d.makeBackup(ctx, db.Backup)
}

// BackupStopped makes a backup while no appliance uses the directory.
func (d Directory) BackupStopped(ctx context.Context) (*Backup, error) {
	return d.makeBackup(ctx, func(w io.Writer) error { return store.BackupFile(DatabasePath(d.Path), lockTimeout, w) })
}

// makeBackup makes a backup. copyDatabase writes the database to a file. If files of records are missing in the
// last attempt, makeBackup logs this and makes the backup without them.
func (d Directory) makeBackup(ctx context.Context, copyDatabase func(io.Writer) error) (*Backup, error) {
	for attempt := 1; ; attempt++ {
		p := &Backup{files: map[string]*os.File{}}
		missing, err := d.collect(ctx, p, copyDatabase)
		if err != nil {
			p.Close()
			return nil, err
		}
		if len(missing) == 0 {
			return p, nil
		}
		if attempt == maxAttempts {
			d.Log.Warn("files are missing in the data directory, and so in the backup", "folder", d.Folder.Name, "records", missing)
			return p, nil
		}
		p.Close() // probably a file was just added or removed
	}
}

// collect opens the files of a backup, and returns the keys of records whose files are missing. It
// reads the folder before and after it copies the database, because a file is created before its
// record is, and removed after its record is.
func (d Directory) collect(ctx context.Context, p *Backup, copyDatabase func(io.Writer) error) (missing []string, err error) {
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
	if err := copyDatabase(spool); err != nil {
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
			missing = append(missing, key)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("check the copy of the database: %w", err)
	}
	p.Manifest.Schema = found.Schema
	return missing, p.listFiles(ctx, d.Folder, d.Log)
}

// listFiles adds the files to the manifest, the database first, and encodes the manifest. It logs and
// leaves out files that File.check refuses, for example because their content does not match their name.
// It returns an error if the database is one of them.
func (p *Backup) listFiles(ctx context.Context, folder Folder, log *slog.Logger) (err error) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(p.files)), func(name string) bool { return name == databaseName })
	names = append([]string{databaseName}, names...)
	for _, name := range names {
		hash := sha256.New()
		n, err := io.Copy(hash, contextReader{ctx, io.NewSectionReader(p.files[name], 0, 1<<62)}) // reads to the end of the file
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		f := File{Name: name, Size: n, SHA256: hex.EncodeToString(hash.Sum(nil))}
		if err := f.check(folder); err != nil {
			log.Warn("a file is not in the backup because it is damaged; remove it, and publish it again", "file", name, "err", err)
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

// openFolder opens those files of the folder that are not in the map files yet, and adds them to it.
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
			continue // the file was removed in the meantime
		}
		if err != nil {
			return fmt.Errorf("read the folder %s: %w", d.Folder.Name, err)
		}
		files[name] = f
	}
	return nil
}

// unnamedFile creates a file in the data directory and unlinks it, so that the file disappears when it
// is closed. If the directory cannot be written, unnamedFile uses the system's temporary directory,
// because an appliance with a failing SD card needs a backup most.
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

// WriteFile calls write to write a backup to a file that only its owner can read. An existing file is
// replaced only if force is true, and only after the backup was written completely.
func WriteFile(path string, force bool, write func(io.Writer) (Manifest, error)) (m Manifest, err error) {
	if info, err := os.Lstat(path); err == nil && (info.IsDir() || !force) {
		return m, existsError(path, info.IsDir())
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".perch-backup-*.tmp") // mode 0600
	if err != nil {
		return m, fmt.Errorf("write the backup: %w", err)
	}
	defer os.Remove(f.Name()) // after os.Rename the name is gone; after renameNew it may still exist
	m, err = write(f)
	if err != nil {
		return m, errors.Join(err, f.Close())
	}
	if err = errors.Join(f.Sync(), f.Close()); err == nil {
		if force {
			err = os.Rename(f.Name(), path)
		} else {
			err = renameNew(f.Name(), path)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return m, existsError(path, false)
	}
	if err != nil {
		return m, fmt.Errorf("write the backup: %w", err)
	}
	return m, store.SyncDirectory(filepath.Dir(path))
}

// existsError returns the error for a file or folder that is in the way of a backup.
func existsError(path string, folder bool) error {
	if folder {
		return fmt.Errorf("%s is a folder; name a file in it", path)
	}
	return fmt.Errorf("%s exists already; name another file, or replace it with --force", path)
}

// renameNew gives a file a new name, and returns fs.ErrExist if that name exists. The old name stays on a
// file system with hard links; the caller removes it. Without hard links, as on most USB sticks, renameNew
// cannot exclude that another process creates the new name at the same moment.
func renameNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// Receive copies a backup from r to w, and checks the manifest and the hashes of all files. Errors for
// an invalid backup are of type store.Shown.
func Receive(r io.Reader, folder Folder, w io.Writer) (Manifest, error) {
	received := io.TeeReader(r, w)
	m, err := unpack(received, folder, func(Manifest) error { return nil }, func(File) (io.WriteCloser, error) { return discarded{io.Discard}, nil })
	if err != nil {
		return m, err
	}
	if _, err = io.Copy(io.Discard, received); err != nil { // copies the padding at the end of the tar
		return m, fmt.Errorf("read the backup: %w", err)
	}
	return m, nil
}

// discarded is a WriteCloser that discards its input.
type discarded struct{ io.Writer }

// Close implements io.Closer.
func (discarded) Close() error { return nil }
