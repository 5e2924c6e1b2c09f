package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"perch/gateway/admin"
	"perch/gateway/door"
	"perch/store"
)

// A backup that is to be restored is staged in a folder of the data directory:
// its files under their names, and, once all of them have been checked and are
// on the disk, the marker. What lies there without a marker is swept; with it,
// it is swapped in before anything is opened.
const (
	stageName  = "restore"
	markerName = "ready"
	keptName   = databaseName + ".before-restore"
)

// stageBackup takes a backup, checks all of it, and has the next start swap it in.
// Nobody else may do so at the same time. Errors in what was read say
// themselves how they are shown; then nothing is staged, and what was staged
// before is not either.
func stageBackup(ctx context.Context, data string, r io.Reader) (m manifest, err error) {
	dir := filepath.Join(data, stageName)
	if err := unstage(dir); err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	for _, folder := range []string{dir, filepath.Join(dir, firmwareName)} {
		if err := os.Mkdir(folder, 0o750); err != nil {
			return m, diskFault(fmt.Errorf("make a folder for the backup: %w", err))
		}
	}
	agree := func(m manifest) error { return errors.Join(replaceable(data), hasRoom(data, m.bytes())) }
	m, err = unpack(stoppable{ctx, r}, agree, func(f archived) (io.WriteCloser, error) { return placeStaged(dir, f) })
	if err != nil {
		return m, err
	}
	if err := checkStaged(dir, m); err != nil {
		return m, err
	}
	return m, mark(data, dir, m)
}

// unstage takes back what was staged, its marker first: half of it must not be
// swapped in.
func unstage(dir string) error {
	err := os.Remove(filepath.Join(dir, markerName))
	if err == nil {
		err = syncDirectory(dir)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("remove what was to be restored before: %w", err)
	}
	return nil
}

// replaceable reports whether what is there can be renamed: a link and a disk
// of its own cannot be replaced without a moment in between.
func replaceable(data string) error {
	var home syscall.Stat_t
	if err := syscall.Stat(data, &home); err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	for _, name := range []string{databaseName, firmwareName} {
		path := filepath.Join(data, name)
		var there syscall.Stat_t
		err := syscall.Lstat(path, &there)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at what is there: %w", err)
		}
		if there.Dev != home.Dev || there.Mode&syscall.S_IFMT == syscall.S_IFLNK {
			return &door.Fault{Word: "not_replaceable", HTTP: http.StatusConflict,
				Sentence: path + " is a link, or a disk of its own, and cannot be replaced in one go; unpack the backup there yourself, while the appliance is stopped"}
		}
	}
	return nil
}

// placeStaged makes a staged file.
func placeStaged(dir string, f archived) (io.WriteCloser, error) {
	path := filepath.Join(dir, filepath.FromSlash(f.Name))
	mode := os.FileMode(0o640)
	if f.Name == databaseName {
		mode = 0o600
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, diskFault(fmt.Errorf("keep %s: %w", f.Name, err))
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, diskFault(fmt.Errorf("keep %s: %w", f.Name, err))
	}
	return synced{file}, nil
}

// synced is a file that is on the disk once it is closed.
type synced struct{ *os.File }

func (s synced) Close() error { return errors.Join(s.Sync(), s.File.Close()) }

// checkStaged reads the staged database from its first page to its last.
func checkStaged(dir string, m manifest) error {
	f, err := os.Open(filepath.Join(dir, databaseName))
	if err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	defer f.Close()
	found, err := store.Check(f, store.Options{Migrations: migrations()}, nil)
	switch {
	case errors.Is(err, store.ErrNewer):
		return &door.Fault{Word: "newer_backup", HTTP: http.StatusUnprocessableEntity, Sentence: fmt.Sprintf(
			"the backup was made by a newer Perch (%s, schema %d, this one knows %d); install that version, and restore it there",
			oneLine(m.Perch), found.Schema, len(migrations()))}
	case errors.Is(err, store.ErrDamaged):
		return badBackup("%v", err)
	case err != nil:
		return err
	case found.Schema != m.Schema:
		return badBackup("its manifest says schema %d, its database %d", m.Schema, found.Schema)
	}
	return nil
}

// mark writes the marker, when all that it vouches for is on the disk.
func mark(data, dir string, m manifest) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("stage the backup: %w", err)
	}
	if err := giveTo(data, dir); err != nil {
		return fmt.Errorf("give the files to the owner of %s: %w", data, err)
	}
	err = syncTree(dir)
	fresh := filepath.Join(dir, markerName+".new")
	if err == nil {
		err = writeSynced(fresh, text)
	}
	if err == nil {
		err = os.Rename(fresh, filepath.Join(dir, markerName))
	}
	if err == nil {
		err = errors.Join(syncDirectory(dir), syncDirectory(data))
	}
	if err != nil {
		return diskFault(fmt.Errorf("stage the backup: %w", err))
	}
	return nil
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// giveTo gives a tree to the owner of the data directory: sudo perch restore
// must not leave files that the appliance cannot open.
func giveTo(data, tree string) error {
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

func syncTree(tree string) error {
	return filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = syncDirectory(path)
		}
		return err
	})
}

// Restore takes a backup that the next start swaps in, and restarts if it is to.
func (a *archives) Restore(ctx context.Context, body io.Reader, restart bool) (admin.Restored, error) {
	if err := a.begin(); err != nil {
		return admin.Restored{}, err
	}
	defer a.end()
	m, err := stageBackup(ctx, a.data, body)
	if err != nil {
		return admin.Restored{}, err
	}
	a.log.Warn("a backup is staged, and takes the place of everything at the next start", "made", m.Created, "version", oneLine(m.Perch))
	told := admin.Restored{Created: m.Created, Perch: oneLine(m.Perch), Appliance: oneLine(m.Appliance), Schema: m.Schema, Files: len(m.Files),
		Bytes: m.bytes(), Restarting: restart, Next: "restart to apply; what changes until then is not kept"}
	if restart {
		told.Next = "it restarts to apply"
		a.restart()
	}
	return told, nil
}

// restore is the command. A running appliance is given the backup; where none
// runs, it is swapped in at once.
func restore(ctx context.Context, args []string, out io.Writer) error {
	var r reach
	f := newFlags("restore")
	r.register(f)
	again := f.Bool("restart", false, "have the appliance restart at once to apply it")
	rest, err := parse(f, args, 1, 1)
	if err != nil {
		return err
	}
	file := os.Stdin
	if rest[0] != "-" {
		if file, err = os.Open(rest[0]); err != nil {
			return fmt.Errorf("read the backup: %w", err)
		}
		defer file.Close()
	}
	c, running, err := r.running(ctx)
	if err != nil {
		return err
	}
	if running {
		return c.sendBackup(ctx, file, *again, out)
	}
	data := dataPath(r.data)
	m, err := restoreHere(ctx, data, file)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "restored: %s\n", m)
	if kept := filepath.Join(data, keptName); exists(kept) {
		fmt.Fprintf(out, "the database of before is %s\n", kept)
	}
	return nil
}

func (c *client) sendBackup(ctx context.Context, file io.Reader, restart bool, out io.Writer) error {
	path := "/api/v1/restore"
	if restart {
		path += "?restart=true"
	}
	answer, err := c.exchange(ctx, http.MethodPost, path, io.NopCloser(file))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var told admin.Restored
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostAnswer)).Decode(&told); err != nil {
		return fmt.Errorf("the answer is not the appliance's: %w", err)
	}
	fmt.Fprintf(out, "checked and staged: made %s by Perch %s on appliance %s\n%s", told.Created.Local().Format(time.DateTime), told.Perch, told.Appliance, told.Next)
	if !told.Restarting {
		fmt.Fprint(out, ": perch restore --restart does both, systemctl restart perch does it now")
	}
	fmt.Fprintln(out)
	return nil
}

// restoreHere restores into a data directory that no appliance uses.
func restoreHere(ctx context.Context, data string, r io.Reader) (m manifest, err error) {
	if err := os.MkdirAll(data, 0o750); err != nil {
		return m, fmt.Errorf("the data directory cannot be made: %w; name another with --data", err)
	}
	held, err := store.Hold(databasePath(data), lockWithin)
	if err != nil {
		return m, err
	}
	defer held.Release()
	if m, err = stageBackup(ctx, data, r); err != nil {
		return m, err
	}
	return m, swapIn(data, slog.New(slog.DiscardHandler))
}
