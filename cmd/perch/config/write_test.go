package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// text is what a file holds.
func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// changes sets the name, and returns the new digest.
func changes(t *testing.T, e *Editor, name string) error {
	t.Helper()
	shown, err := e.Show()
	if err != nil {
		t.Fatal(err)
	}
	_, faults, err := e.Write(Change{Set: map[string]any{"name": name}, Digest: shown.Digest})
	if len(faults) > 0 {
		t.Errorf("faults: %+v", faults)
	}
	return err
}

// left are the files of a folder.
func left(t *testing.T, dir string) (names string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		names += f.Name() + " "
	}
	return strings.TrimSpace(names)
}

// TestTheFileIsReplaced: mode and link stay, the one before is kept, and nothing is
// left beside them.
func TestTheFileIsReplaced(t *testing.T) {
	e := editing(t, "name: one # mine\n")
	real := e.File
	if err := os.Chmod(real, 0o604); err != nil {
		t.Fatal(err)
	}
	e.File = filepath.Join(t.TempDir(), "link.yaml")
	if err := os.Symlink(real, e.File); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"two", "three"} {
		if err := changes(t, e, name); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(real)
	if err != nil || info.Mode().Perm() != 0o604 || text(t, real) != "name: three # mine\n" || text(t, real+".before") != "name: two # mine\n" {
		t.Errorf("%v, %v: %q before %q", info.Mode(), err, text(t, real), text(t, real+".before"))
	}
	if to, err := os.Readlink(e.File); err != nil || to != real {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if names := left(t, filepath.Dir(real)); names != "perch.yaml perch.yaml.before" {
		t.Errorf("there are %s", names)
	}
}

// asAnother does something as a user who may not write in a folder.
func asAnother(t *testing.T, dir string, do func()) {
	t.Helper()
	if err := errors.Join(os.Chmod(dir, 0o555), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(dir, 0o755) }() // it is removed after the test
	if os.Geteuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := errors.Join(syscall.Setfsuid(65534), syscall.Setfsgid(65534)); err != nil {
			t.Skip(err)
		}
		defer func() { _ = errors.Join(syscall.Setfsuid(0), syscall.Setfsgid(0)) }()
	}
	do()
}

// TestTheServiceWritesThatFileAlone: where the folder is another's, the file is written
// in its place, if its mode lets us; what it held before is among the data.
func TestTheServiceWritesThatFileAlone(t *testing.T) {
	e := editing(t, "name: one-which-is-longer # mine\n")
	e.Data = t.TempDir()
	if err := errors.Join(os.Chmod(e.File, 0o666), os.Chmod(e.Data, 0o777)); err != nil {
		t.Fatal(err)
	}
	asAnother(t, filepath.Dir(e.File), func() {
		if shown, err := e.Show(); err != nil || !shown.Writable {
			t.Errorf("%+v, %v", shown, err)
		}
		if err := changes(t, e, "two"); err != nil {
			t.Error(err)
		}
		shown, err := e.Show()
		if err != nil || !shown.Before || shown.Text != "name: two # mine\n" {
			t.Errorf("%+v, %v", shown, err)
		}
	})
	if before := text(t, filepath.Join(e.Data, "perch.yaml.before")); !strings.HasPrefix(before, "name: one") {
		t.Errorf("before it was %q", before)
	}
	if names := left(t, filepath.Dir(e.File)) + "; " + left(t, e.Data); names != "perch.yaml; perch.yaml.before" {
		t.Errorf("there are %s", names)
	}
	if err := os.Chmod(e.File, 0o644); err != nil {
		t.Fatal(err)
	}
	asAnother(t, filepath.Dir(e.File), func() {
		if os.Geteuid() != 0 {
			_ = os.Chmod(e.File, 0o444) // it is our own
		}
		shown, err := e.Show()
		if err != nil || shown.Writable || !strings.Contains(shown.Why, "may not write "+e.File) || !strings.Contains(shown.Why, "sudo chmod g+w") {
			t.Errorf("%+v, %v", shown, err)
		}
		if err := changes(t, e, "three"); !errors.Is(err, ErrReadOnly) {
			t.Errorf("it is written: %v", err)
		}
	})
}

// TestAPowerCutWhileTheFileIsWritten in its place is mended at the next start, wherever it
// comes; what an owner has written since stays.
func TestAPowerCutWhileTheFileIsWritten(t *testing.T) {
	const before, next = "name: one # mine, which is long\nlanguage: en\n", "name: two # mine\n"
	e := editing(t, before)
	e.Data = t.TempDir()
	if err := errors.Join(os.Chmod(e.File, 0o666), os.Chmod(e.Data, 0o777),
		os.WriteFile(filepath.Join(e.Data, "perch.yaml.before"), []byte(before), 0o666)); err != nil {
		t.Fatal(err)
	}
	mended := func(now string) string {
		for path, text := range map[string]string{e.File: now, filepath.Join(e.Data, "perch.yaml.next"): next} {
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			_ = os.Chmod(path, 0o666)
		}
		asAnother(t, filepath.Dir(e.File), func() {
			if err := e.Mend(); err != nil {
				t.Error(err)
			}
		})
		if names := left(t, e.Data); names != "perch.yaml.before" {
			t.Errorf("there are %s", names)
		}
		return text(t, e.File)
	}
	for _, kept := range []string{before, next, "name: three\n", "name: two # mine, and more\n"} {
		if now := mended(kept); now != kept {
			t.Errorf("%q becomes %q", kept, now)
		}
	}
	for at := 7; at <= len(next); at++ {
		if now := mended(next[:at] + before[at:]); now != next {
			t.Errorf("cut at %d: %q", at, now)
		}
	}
	for _, cut := range []string{"", next[:9], next[:9] + "\x00\x00\x00"} {
		if now := mended(cut); now != next {
			t.Errorf("%q becomes %q", cut, now)
		}
	}
}

// TestWithoutAFile the first change makes one, where the next start reads it.
func TestWithoutAFile(t *testing.T) {
	if Writable(filepath.Dir(systemConfig)) {
		t.Skip("this machine has the package, whose file it would make")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	e := editing(t, "")
	e.File = ""
	shown, err := e.Show()
	if err != nil || !shown.Writable || shown.Text != "" || !strings.Contains(shown.Why, "there is no configuration file") {
		t.Fatalf("%+v, %v", shown, err)
	}
	if err := changes(t, e, "two"); err != nil {
		t.Fatal(err)
	}
	if now := text(t, "perch.yaml"); !strings.HasPrefix(now, "# Perch's configuration.") || !strings.HasSuffix(now, "\nname: two\n") {
		t.Errorf("it is %s", now)
	}
	if File("") != "perch.yaml" {
		t.Errorf("read is %q", File(""))
	}
	if shown, err = e.Show(); err != nil || shown.Why != "" || shown.File != filepath.Join(dir, "perch.yaml") {
		t.Errorf("%+v, %v", shown, err)
	}
}
