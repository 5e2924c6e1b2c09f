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

// archive writes a folder as a reproducible tar archive: files are sorted by name, owners are
// numbers, and a time after latest is replaced by latest. archive leaves out the paths that match
// a pattern in exclude.
func archive(w io.Writer, folder string, latest time.Time, exclude []string) error {
	tw := tar.NewWriter(w)
	links := map[uint64]string{} // first name of each file with several hard links; key: inode
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil || name == "." {
			return err
		}
		if isExcluded(exclude, filepath.ToSlash(name)) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := writeEntry(tw, path, filepath.ToSlash(name), info, latest, links); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	return errors.Join(err, tw.Close())
}

// writeEntry writes the file at path to the archive, as an entry with the given name.
func writeEntry(tw *tar.Writer, path, name string, info fs.FileInfo, latest time.Time, links map[uint64]string) (err error) {
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
		if other, ok := links[stat.Ino]; ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, other, 0
			return tw.WriteHeader(h)
		}
		links[stat.Ino] = name
	}
	if err := tw.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(tw, f)
	return errors.Join(err, f.Close())
}
