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
	"os"
	"path/filepath"
	"time"

	"perch/store"
)

// Finish swaps in a staged backup, and removes an incomplete one. It must be called
// first at start.
func (d Directory) Finish() error {
	if _, err := os.Lstat(filepath.Join(d.Path, stageName)); err != nil {
		return nil // the store will report what is wrong with the directory
	}
	held, err := store.AcquireLock(DatabasePath(d.Path), lockWithin)
	if err != nil {
		return err
	}
	defer held.Release()
	return d.swapIn(d.Log)
}

// swapIn does the work of Finish. The database is held.
func (d Directory) swapIn(log *slog.Logger) error {
	data := d.Path
	m, ready, err := staged(data)
	if err != nil {
		log.Error("what was to be restored is damaged, and everything is left as it was; restore the backup again", "err", err)
	}
	if ready {
		m := m.Plain()
		log.Info("a backup is restored", "made", m.Created, "version", m.Perch, "appliance", m.Appliance, "files", len(m.Files))
		// First, so that the new database is never used with them. An interrupted swap repeats it.
		if err := d.removeOutdated(); err != nil {
			return fmt.Errorf("restore the backup that is staged in %s: %w", filepath.Join(data, stageName), err)
		}
		for _, s := range d.swap() {
			if err := s.do(); err != nil {
				return fmt.Errorf("restore the backup that is staged in %s: %s: %w", filepath.Join(data, stageName), s.name, err)
			}
		}
	}
	return unstage(filepath.Join(data, stageName))
}

// removeOutdated removes the files that belong to the previous database.
func (d Directory) removeOutdated() error {
	for _, name := range d.Outdated {
		if err := os.Remove(filepath.Join(d.Path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return store.SyncDirectory(d.Path)
}

// staged returns the backup that is ready to be swapped in. Cards lose data: before the
// first swap every file is read once more.
func staged(data string) (m Manifest, ready bool, err error) {
	dir := filepath.Join(data, stageName)
	text, err := os.ReadFile(filepath.Join(dir, markerName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, false, fmt.Errorf("read the marker: %w", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, databaseName)); errors.Is(err, fs.ErrNotExist) {
		return m, true, nil // an interrupted swap must be finished
	}
	for _, f := range m.Files {
		if err := f.same(filepath.Join(dir, filepath.FromSlash(f.Name))); err != nil {
			return m, false, err
		}
	}
	return m, true, nil
}

func (f File) same(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return err
	}
	if hex.EncodeToString(hash.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%s has changed", path)
	}
	return nil
}

// step is a part of the swap that can be repeated after an interruption.
type step struct {
	name string
	do   func() error
}

// swap returns the steps that replace the present files by the staged ones. As long as the
// marker exists, the next start repeats all of them; a step that is done finds nothing to
// do. The renames of each step are synced before the next begins.
func (d Directory) swap() []step {
	data := d.Path
	at := func(names ...string) string { return filepath.Join(append([]string{data}, names...)...) }
	dir, database, folder := at(stageName), at(stageName, databaseName), at(stageName, d.Folder.Name)
	move := func(from, to string) error {
		if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return errors.Join(store.SyncDirectory(dir), store.SyncDirectory(data))
	}
	return []step{
		{"keep the database of before", func() error {
			if !store.Exists(database) || !store.Exists(at(databaseName)) {
				return nil
			}
			return linkAs(at(databaseName), at(keptName))
		}},
		{"put the database in its place", func() error { return move(database, at(databaseName)) }},
		{"put the folder of before aside", func() error {
			if !store.Exists(folder) {
				return nil
			}
			return move(at(d.Folder.Name), at(stageName, "before"))
		}},
		{"put the folder in its place", func() error { return move(folder, at(d.Folder.Name)) }},
		{"put the settings in their place", func() error { return move(at(stageName, settingsName), at(settingsName)) }},
		{"take the marker away", func() error { return move(at(stageName, markerName), at(stageName, "done")) }},
	}
}

// linkAs gives a file a second name, replacing another file of that name. On a file system
// without links it loses its first name.
func linkAs(path, as string) error {
	fresh := as + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.Link(path, fresh); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return errors.Join(os.Rename(path, as), store.SyncDirectory(filepath.Dir(as)))
	}
	// If both names are of the same file already, this changes nothing.
	return errors.Join(os.Rename(fresh, as), os.RemoveAll(fresh), store.SyncDirectory(filepath.Dir(as)))
}

// Restore restores a backup into a data directory that no appliance uses. kept is the path
// of the previous database, or empty.
func (d Directory) Restore(ctx context.Context, r io.Reader) (m Manifest, kept string, err error) {
	if err := os.MkdirAll(d.Path, 0o750); err != nil {
		return m, "", fmt.Errorf("the data directory cannot be made: %w; name another with --data", err)
	}
	held, err := store.AcquireLock(DatabasePath(d.Path), lockWithin)
	if err != nil {
		return m, "", err
	}
	defer held.Release()
	if m, err = d.Stage(ctx, r); err != nil {
		return m, "", err
	}
	if err := d.swapIn(slog.New(slog.DiscardHandler)); err != nil {
		return m, "", err
	}
	if kept = filepath.Join(d.Path, keptName); !store.Exists(kept) {
		kept = ""
	}
	return m, kept, nil
}

// lockWithin is how long a command waits for a database in use.
const lockWithin = time.Second
