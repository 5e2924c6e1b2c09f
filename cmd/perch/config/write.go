package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// beside is where the configuration before the last change is kept.
func beside(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path + ".before"
}

// writable is a sentence why this process cannot write the file, or nil.
func (e *Editor) writable() error {
	path := e.path()
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && e.File == "" {
		real, err = path, nil
	}
	if err != nil {
		return err
	}
	dir := filepath.Dir(real)
	info, err := os.Stat(real)
	us := ourselves()
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && !mayReplace(info, us):
		return fmt.Errorf("%s is %s, and Perch runs as %s: change it in an editor, or let this page change it: %s",
			real, ownerOf(info), us.Name, allow(us, dir, real))
	case !Writable(dir):
		return fmt.Errorf("Perch, which runs as %s, cannot write in %s: change %s in an editor, or let this page change it: %s",
			us.Name, dir, real, allow(us, dir, real))
	}
	return nil
}

// mayReplace reports whether a file stays its owner's where this process replaces it.
func mayReplace(f fs.FileInfo, us Account) bool {
	own, ok := f.Sys().(*syscall.Stat_t)
	return !ok || us.uid == 0 || own.Uid == us.uid
}

// allow are the commands that let an account change a configuration, and nothing
// else beside it: in a directory with the sticky bit everybody changes his own files alone.
func allow(us Account, dir, file string) string {
	return fmt.Sprintf("sudo chgrp %s %s && sudo chmod 1775 %s && sudo chown %s %s", us.Name, ShellWord(dir), ShellWord(dir),
		us.Name, ShellWord(file))
}

// replaceFile has a file hold a text, all of it or nothing, and keeps what it held
// before beside it. Its mode and its owner stay, and a link leads where it did.
func replaceFile(path, before, text string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return writeFile(path, text, nil)
	case err != nil:
		return err
	}
	if err := writeFile(path+".before", before, info); err != nil {
		return err
	}
	return writeFile(path, text, info)
}

// writeFile writes a file under another name, and renames it when it is on the disk.
func writeFile(path, text string, like fs.FileInfo) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".perch-*.yaml")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // what it was to hold is lost either way
		}
	}()
	if like != nil {
		err = f.Chmod(like.Mode().Perm())
		if own, ok := like.Sys().(*syscall.Stat_t); ok && err == nil {
			err = f.Chown(int(own.Uid), int(own.Gid))
		}
	}
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDirectory(dir)
}

// syncDirectory has a rename on the disk.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
