package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// archive writes a folder, except the paths in without, as a reproducible tar: sorted by name,
// with numeric owners, and no time after latest.
func archive(w io.Writer, folder string, latest time.Time, without []string) error {
	to := tar.NewWriter(w)
	first := map[uint64]string{} // path of the first name of files with several, by inode
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil || name == "." {
			return err
		}
		if excluded(without, filepath.ToSlash(name)) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := entry(to, path, filepath.ToSlash(name), info, latest, first); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	return errors.Join(err, to.Close())
}

func entry(to *tar.Writer, path, name string, info fs.FileInfo, latest time.Time, first map[uint64]string) (err error) {
	var target string
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname, h.AccessTime, h.ChangeTime, h.Format = name, "", "", time.Time{}, time.Time{}, tar.FormatUnknown
	h.ModTime = h.ModTime.Truncate(time.Second)
	if h.ModTime.After(latest) {
		h.ModTime = latest
	}
	stat := info.Sys().(*syscall.Stat_t)
	switch {
	case info.IsDir():
		h.Name += "/"
	case info.Mode().IsRegular() && stat.Nlink > 1:
		if other, seen := first[stat.Ino]; seen {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, other, 0
			return to.WriteHeader(h)
		}
		first[stat.Ino] = name
	}
	if err := to.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return errors.Join(err, f.Close())
}
