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

// FinishRestore swaps in a staged backup, or removes it if it has no marker or is damaged. The appliance must
// call FinishRestore when it starts, before it opens any file of the data directory.
func (d Directory) FinishRestore() error {
	if _, err := os.Lstat(filepath.Join(d.Path, stageName)); err != nil {
		return nil // if the directory cannot be read, opening the database fails as well
	}
	lock, err := store.AcquireLock(DatabasePath(d.Path), lockTimeout)
	if err != nil {
		return err
	}
	defer lock.Release()
	err = d.swapIn(d.Log)
	var damage stageDamage
	if errors.As(err, &damage) {
		d.Log.Error("the staged backup is damaged and is not restored; restore the backup again", "err", damage.error)
		return nil
	}
	return err
}

// stageDamage is an error of swapIn: the staged backup was damaged, and has been removed.
type stageDamage struct{ error }

// swapIn swaps in a staged backup, or removes it if it has no marker or is damaged. The error for a damaged
// one wraps a stageDamage. The caller holds the lock of the database.
func (d Directory) swapIn(log *slog.Logger) error {
	data := d.Path
	m, ready, err := readStaged(data)
	if err != nil {
		if err := unstage(filepath.Join(data, stageName)); err != nil {
			return err
		}
		return fmt.Errorf("the files that were written are damaged: %w; restore the backup again", stageDamage{err})
	}
	if ready {
		m := m.Plain()
		log.Info("a backup is restored", "made", m.Created, "version", m.Perch, "appliance", m.Appliance, "files", len(m.Files))
		// The outdated files are removed first, so that they are never used with the new database.
		if err := d.removeOutdated(); err != nil {
			return fmt.Errorf("restore the backup that is staged in %s: %w", filepath.Join(data, stageName), err)
		}
		for _, s := range d.swapSteps() {
			if err := s.run(); err != nil {
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

// readStaged returns the manifest of the staged backup, and whether the backup is ready to be swapped
// in. It checks the hash of every file again, because SD cards lose data. It skips this check if an
// interrupted swap has moved the staged database into place.
func readStaged(data string) (m Manifest, ready bool, err error) {
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
		return m, true, nil // a swap was interrupted after the database was moved
	}
	for _, f := range m.Files {
		if err := f.checkHash(filepath.Join(dir, filepath.FromSlash(f.Name))); err != nil {
			return m, false, err
		}
	}
	return m, true, nil
}

// checkHash returns an error unless the file at path has the hash of f.
func (f File) checkHash(path string) error {
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

// step is a step of the swap. It can be repeated after an interruption.
type step struct {
	name string // description of the step in errors
	run  func() error
}

// swapSteps returns the steps that replace the current files with the staged ones. After an
// interruption the next start runs all of them again; completed steps do nothing. The last step
// renames the marker, so that the swap is not repeated. The renames of each step are synced before the
// next step.
func (d Directory) swapSteps() []step {
	data := d.Path
	path := func(names ...string) string { return filepath.Join(append([]string{data}, names...)...) }
	dir, database, folder := path(stageName), path(stageName, databaseName), path(stageName, d.Folder.Name)
	move := func(from, to string) error {
		if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return errors.Join(store.SyncDirectory(dir), store.SyncDirectory(data))
	}
	return []step{
		{"save the previous database", func() error {
			if !store.Exists(database) || !store.Exists(path(databaseName)) {
				return nil
			}
			return replaceLink(path(databaseName), path(previousName))
		}},
		{"move the database into place", func() error { return move(database, path(databaseName)) }},
		{"move the previous folder away", func() error {
			if !store.Exists(folder) {
				return nil
			}
			return move(path(d.Folder.Name), path(stageName, "before"))
		}},
		{"move the folder into place", func() error { return move(folder, path(d.Folder.Name)) }},
		{"move the settings into place", func() error { return move(path(stageName, settingsName), path(settingsName)) }},
		{"remove the marker", func() error { return move(path(stageName, markerName), path(stageName, "done")) }},
	}
}

// replaceLink gives a file a second name, replacing another file with that name. On a file system
// without hard links it renames the file.
func replaceLink(path, newName string) error {
	fresh := newName + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.Link(path, fresh); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return errors.Join(os.Rename(path, newName), store.SyncDirectory(filepath.Dir(newName)))
	}
	// Rename does nothing if both names are links to the same file, so fresh has to be removed.
	return errors.Join(os.Rename(fresh, newName), os.RemoveAll(fresh), store.SyncDirectory(filepath.Dir(newName)))
}

// Restore restores a backup into a data directory that no appliance uses. previous is the path of
// the database that this or an earlier restore has replaced, or empty if none was replaced.
func (d Directory) Restore(ctx context.Context, r io.Reader) (m Manifest, previous string, err error) {
	if err := os.MkdirAll(d.Path, 0o750); err != nil {
		return m, "", fmt.Errorf("create the data directory: %w; choose another one with --data", err)
	}
	lock, err := store.AcquireLock(DatabasePath(d.Path), lockTimeout)
	if err != nil {
		return m, "", err
	}
	defer lock.Release()
	if m, err = d.Stage(ctx, r); err != nil {
		return m, "", err
	}
	if err := d.swapIn(slog.New(slog.DiscardHandler)); err != nil {
		return m, "", err
	}
	if previous = filepath.Join(d.Path, previousName); !store.Exists(previous) {
		previous = ""
	}
	return m, previous, nil
}

// lockTimeout is the maximum time to wait for the lock of a database that another process uses.
const lockTimeout = time.Second
