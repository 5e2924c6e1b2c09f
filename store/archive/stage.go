package archive

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"perch/plain"
	"perch/store"
)

// A backup is restored in two steps. First its files are staged in a folder of the data directory,
// and after all of them were checked and synced, a marker file is added. The next start of the
// appliance replaces the current files with the staged files ("swaps them in") before it opens any
// file. If the folder has no marker, the appliance removes the folder instead.
const (
	stageName    = "restore"                        // the folder
	markerName   = "ready"                          // the marker in the folder
	previousName = databaseName + ".before-restore" // new name of the previous database
)

// Stage reads and checks a whole backup, and makes the next start swap it in. It first removes an
// earlier staged backup; unless that fails, no backup is staged after an error. Errors for an invalid
// backup are of type store.Shown.
func (d Directory) Stage(ctx context.Context, r io.Reader) (m Manifest, err error) {
	dir := filepath.Join(d.Path, stageName)
	if err := unstage(dir); err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	for _, folder := range []string{dir, filepath.Join(dir, d.Folder.Name)} {
		if err := os.Mkdir(folder, 0o750); err != nil {
			return m, diskFault(fmt.Errorf("make a folder for the backup: %w", err))
		}
	}
	accept := func(m Manifest) error { return errors.Join(d.checkReplaceable(), checkSpace(d.Path, m.Bytes())) }
	m, err = unpack(contextReader{ctx, r}, d.Folder, accept, func(f File) (io.WriteCloser, error) { return createStaged(dir, f) })
	if err != nil {
		return m, err
	}
	if err := d.checkStaged(dir, m); err != nil {
		return m, err
	}
	return m, addMarker(d.Path, dir, m)
}

// unstage removes a staged backup. It removes the marker first, so that an incomplete backup is
// never swapped in.
func unstage(dir string) error {
	err := os.Remove(filepath.Join(dir, markerName))
	if err == nil {
		err = store.SyncDirectory(dir)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("remove the backup that was staged before: %w", err)
	}
	return nil
}

// checkReplaceable returns an error if a file or folder that a restore replaces cannot be renamed
// atomically because it is a link or a mount point.
func (d Directory) checkReplaceable() error {
	var dir syscall.Stat_t
	if err := syscall.Stat(d.Path, &dir); err != nil {
		return fmt.Errorf("examine the data directory: %w", err)
	}
	for _, name := range []string{databaseName, settingsName, d.Folder.Name} {
		path := filepath.Join(d.Path, name)
		var file syscall.Stat_t
		err := syscall.Lstat(path, &file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("examine %s: %w", path, err)
		}
		if file.Dev != dir.Dev || file.Mode&syscall.S_IFMT == syscall.S_IFLNK {
			return store.NewShown("not_replaceable", http.StatusConflict,
				path+" is a link or on another disk, and cannot be replaced atomically; unpack the backup there by hand while the appliance is stopped")
		}
	}
	return nil
}

// createStaged creates the file for f in dir, the folder of staged files.
func createStaged(dir string, f File) (io.WriteCloser, error) {
	path := filepath.Join(dir, filepath.FromSlash(f.Name))
	mode := os.FileMode(0o640)
	if f.Name == databaseName || f.Name == settingsName {
		mode = 0o600
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, diskFault(fmt.Errorf("store %s: %w", f.Name, err))
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, diskFault(fmt.Errorf("store %s: %w", f.Name, err))
	}
	return synced{file}, nil
}

// synced is a file that is synced when it is closed.
type synced struct{ *os.File }

// Close syncs and closes the file.
func (s synced) Close() error { return errors.Join(s.Sync(), s.File.Close()) }

// checkStaged checks the whole staged database, and that it has the schema that the manifest states.
func (d Directory) checkStaged(dir string, m Manifest) error {
	f, err := os.Open(filepath.Join(dir, databaseName))
	if err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	defer f.Close()
	found, err := store.Check(f, store.Options{Migrations: d.Migrations}, nil)
	switch {
	case errors.Is(err, store.ErrNewer):
		return store.NewShown("newer_backup", http.StatusUnprocessableEntity, fmt.Sprintf(
			"the backup was made by a newer Perch (%s, schema %d, this one knows %d); install that version, and restore it there",
			plain.Clip(plain.Text(m.Perch), 60), found.Schema, len(d.Migrations)))
	case errors.Is(err, store.ErrDamaged):
		return badBackup("%v", err)
	case err != nil:
		return err
	case found.Schema != m.Schema:
		return badBackup("its manifest says schema %d, its database %d", m.Schema, found.Schema)
	}
	return nil
}

// addMarker gives the staged files to their owner (see chownTree), syncs their directories, and then writes
// the marker. The files were synced when they were closed.
func addMarker(data, dir string, m Manifest) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("stage the backup: %w", err)
	}
	if err := chownTree(data, dir); err != nil {
		return fmt.Errorf("give the files to the owner of %s: %w", data, err)
	}
	err = syncTree(dir)
	if err == nil {
		err = store.WriteFile(filepath.Join(dir, markerName), text)
	}
	if err == nil {
		err = store.SyncDirectory(data)
	}
	if err != nil {
		return diskFault(fmt.Errorf("stage the backup: %w", err))
	}
	return nil
}

// chownTree gives a directory tree to the owner of the data directory if this process runs as root:
// otherwise the appliance could not open files that sudo perch restore has written.
func chownTree(data, tree string) error {
	info, err := os.Stat(data)
	if err != nil || os.Getuid() != 0 {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		return cmp.Or(err, os.Lchown(path, int(owner.Uid), int(owner.Gid)))
	})
}

// syncTree syncs all directories of a tree.
func syncTree(tree string) error {
	return filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = store.SyncDirectory(path)
		}
		return err
	})
}
