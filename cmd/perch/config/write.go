package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A file is replaced by another that is renamed over it, where this process may do
// that: all of it or nothing. The package's file lies in a folder that is root's, and
// what may write there could put another in the place of the folder of secrets. So the
// service may write that one file, and nothing beside it. It is then written in its
// place, and what it is to hold lies in the data directory until it does.

// place is where a file of the configuration is, and how it is written.
type place struct {
	path string // of the file itself, not of a link to it
	data string // the data directory; empty where there is none
	info fs.FileInfo
}

// place finds the file.
func (e *Editor) place() (place, error) {
	p := place{path: e.path(), data: e.Data}
	if real, err := filepath.EvalSymlinks(p.path); err == nil {
		p.path = real
	}
	info, err := os.Stat(p.path)
	if errors.Is(err, fs.ErrNotExist) && e.File == "" {
		return p, nil
	}
	p.info = info
	return p, err
}

// renames reports whether another file may be renamed over it, and stays its owner's.
func (p place) renames() bool {
	us := ourselves()
	if p.info != nil {
		own, ok := p.info.Sys().(*syscall.Stat_t)
		if ok && us.uid != 0 && (own.Uid != us.uid || !slices.Contains(us.gids, own.Gid)) {
			return false
		}
	}
	return Writable(filepath.Dir(p.path))
}

// beside is a file with a name of its own: in the same folder, or among the data.
func (p place) beside(suffix string) string {
	if p.renames() || p.data == "" {
		return p.path + suffix
	}
	return filepath.Join(p.data, filepath.Base(p.path)+suffix)
}

// writable is a sentence why this process cannot write the file, or nil.
func (p place) writable() error {
	us := ourselves()
	if p.renames() {
		return nil
	}
	if p.info == nil {
		return fmt.Errorf("there is no configuration file, and Perch, which runs as %s, may make none in %s; make one: sudo install -m 660 -g %s /dev/null %s",
			us.Name, filepath.Dir(p.path), us.Name, ShellWord(p.path))
	}
	f, err := os.OpenFile(p.path, os.O_WRONLY, 0)
	if err == nil && p.data != "" {
		return f.Close()
	}
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%s is read-only for Perch; change it where it is managed, or in an editor", p.path)
	}
	cure := "sudo chmod g+w " + ShellWord(p.path)
	if own, ok := p.info.Sys().(*syscall.Stat_t); ok && !slices.Contains(us.gids, own.Gid) {
		cure = fmt.Sprintf("sudo chgrp %s %s && %s", us.Name, ShellWord(p.path), cure)
	}
	return fmt.Errorf("the user %s, whom Perch runs as, may not write %s (%s); change it in an editor, or let this page change it: %s",
		us.Name, p.path, ownerOf(p.info), cure)
}

// replace has the file hold a text, and keeps what it held before.
func (p place) replace(before, text string) error {
	if p.info == nil {
		return writeFile(p.path, text, nil)
	}
	if err := writeFile(p.beside(".before"), before, p.info); err != nil {
		return err
	}
	if p.renames() {
		return writeFile(p.path, text, p.info)
	}
	next := p.beside(".next")
	if err := writeFile(next, text, p.info); err != nil {
		return err
	}
	if err := overwrite(p.path, text); err != nil {
		return err // the next start looks at what has come of it
	}
	return os.Remove(next)
}

// overwrite writes a file in its place.
func overwrite(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), 0)
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Mend completes a change that a power cut has left half done. It is for a start,
// before the file is read.
func (e *Editor) Mend() error {
	p, err := e.place()
	if err != nil || p.info == nil || p.data == "" || p.renames() {
		return nil // there is nothing, or nothing of ours
	}
	next, err := os.ReadFile(p.beside(".next"))
	if err != nil {
		return nil
	}
	before, err := os.ReadFile(p.beside(".before"))
	if err != nil {
		return fmt.Errorf("mend the configuration: %w", err)
	}
	now, err := os.ReadFile(p.path)
	if err != nil {
		return nil // reading it says so
	}
	if torn(string(now), string(before), string(next)) {
		if err := overwrite(p.path, string(next)); err != nil {
			return fmt.Errorf("mend the configuration: %w", err)
		}
	}
	return os.Remove(p.beside(".next"))
}

// torn reports whether a file was being written from one text to another. What its
// owner has written since is neither.
func torn(now, before, next string) bool {
	if now == before || now == next {
		return false
	}
	same := 0
	for same < min(len(now), len(next)) && now[same] == next[same] {
		same++
	}
	rest := now[same:]
	return rest == "" || strings.ContainsRune(rest, 0) || same <= len(before) && rest == before[same:]
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
			// Among the data, it is ours.
			if err = f.Chown(int(own.Uid), int(own.Gid)); errors.Is(err, fs.ErrPermission) {
				err = f.Chmod(like.Mode().Perm() & 0o600)
			}
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
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
