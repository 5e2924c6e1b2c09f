package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"perch/agent"
	"perch/firmware-tools/simrobot"
	"perch/ota"
	"perch/store"
)

// command runs a command line of the program and returns its exit code and what
// it prints.
func commandLine(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &o, &e)
	return code, o.String(), e.String()
}

// archive is what is in a backup.
func archive(t *testing.T, text []byte) (m manifest, files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(text))
	for {
		head, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[head.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(files[manifestName], &m); err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Files {
		if got := files[f.Name]; int64(len(got)) != f.Size || fmt.Sprintf("%x", sha256.Sum256(got)) != f.SHA256 {
			t.Errorf("%s is not what the manifest says", f.Name)
		}
	}
	if len(files) != len(m.Files)+1 {
		t.Errorf("%d files, of which %d are in the manifest", len(files), len(m.Files))
	}
	return m, files
}

// records are those of a table in a backup.
func records(t *testing.T, database []byte, table string) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	writeFile(t, path, database)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]string{}
	if _, err := store.Check(f, store.Options{Migrations: migrations()}, func(in, key string, value []byte) error {
		if in == table {
			all[key] = string(value)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func writeFile(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// entries are the names of all files in a directory and below.
func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, _ := filepath.Rel(dir, path) // it is below
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(names, func(a, b string) int { // folders first
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(a, b))
	})
	return names
}

// publishImage puts an image into the catalogue and returns its hash.
func (h *house) publishImage(version string) string {
	h.t.Helper()
	var shown ota.Shown
	h.adminWith(http.MethodPost, "/api/v1/firmware?board=m5stack-stack-chan", string(simrobot.Image(version, 64<<10)), &shown)
	return shown.SHA256
}

func (h *house) remember(body string) {
	h.t.Helper()
	if _, err := h.memory.Remember(agent.Entry{Name: body, Body: body}, time.Now()); err != nil {
		h.t.Fatal(err)
	}
}

// TestBackupAndRestore is the whole way: a backup while the appliance runs, what
// happens afterwards, and the restore after which all of that never was.
func TestBackupAndRestore(t *testing.T) {
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "perch.tar")
	c := testConfig()
	a, err := newApp(&c, appOptions{data: data, log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(t.Context()) }()
	h := &house{app: a, t: t}
	h.remember("the cat is called Miso")
	kept := h.publishImage("1.0.0")
	writeFile(t, filepath.Join(data, "firmware", "assets", "fonts.bin"), []byte("fonts"))
	writeFile(t, filepath.Join(data, "firmware", ".upload-1"), []byte("half"))

	if code, out, errs := commandLine(t, "backup", "--data", data, file); code != exitDone || !strings.Contains(out, a.id) {
		t.Fatalf("backup: %d %s %s", code, out, errs)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v %v", info, err)
	}
	m, files := archive(t, readFile(t, file))
	if m.Format != 1 || m.Perch != version || m.Schema != len(migrations()) || m.Appliance != a.id || time.Since(m.Created) > time.Minute || len(m.Files) != 3 ||
		m.Files[0].Name != "perch.db" || files["firmware/"+kept+".bin"] == nil || string(files["firmware/assets/fonts.bin"]) != "fonts" {
		t.Errorf("the backup is %+v", m)
	}
	for _, name := range []string{"admin-token", "token-key"} {
		if bytes.Contains(readFile(t, file), bytes.TrimSpace(readFile(t, filepath.Join(data, name)))) {
			t.Errorf("it holds the secret of %s", name)
		}
	}

	h.remember("the cat is gone")
	h.admin(http.MethodDelete, "/api/v1/firmware/"+kept, nil)
	gone := h.publishImage("2.0.0")
	code, out, errs := commandLine(t, "restore", "--url", h.url(""), "--token-file", filepath.Join(data, "admin-token"), "--restart", file)
	if code != exitDone || !strings.Contains(out, "restarts to apply") {
		t.Fatalf("restore: %d %s %s", code, out, errs)
	}
	if err := <-ended; !errors.Is(err, errRestart) {
		t.Errorf("it ends with %v", err)
	}
	a.Close()

	h = open(t, c, data)
	if got := h.memory.Search("cat", time.Now()); len(got) != 1 || got[0].Body != "the cat is called Miso" {
		t.Errorf("remembered is %+v", got)
	}
	if list := h.firmware.List(); len(list) != 1 || list[0].SHA256 != kept {
		t.Errorf("the catalogue is %+v", list)
	}
	got := strings.Join(entries(t, filepath.Join(data, "firmware")), " ")
	if want := "assets/fonts.bin " + kept + ".bin"; got != want {
		t.Errorf("in the folder is %s, want %s (and not %s)", got, want, gone)
	}
	if exists(filepath.Join(data, stageName)) {
		t.Error("what was staged is still there")
	}
	if before := records(t, readFile(t, filepath.Join(data, keptName)), "memory"); len(before) != 2 {
		t.Errorf("the database of before has %v", before)
	}
}

// TestBackupWithoutAnAppliance reads the data directory, and changes nothing.
func TestBackupWithoutAnAppliance(t *testing.T) {
	data, out := t.TempDir(), t.TempDir()
	h := open(t, testConfig(), data)
	h.remember("the cat is called Miso")
	h.stop()
	l := filepath.Join(data, "perch.sock")
	if exists(l) {
		t.Fatal("the socket is still there")
	}
	killed(t, l)
	before := fmt.Sprint(entries(t, data), sha256.Sum256(readFile(t, databasePath(data))))
	file := filepath.Join(out, "b.tar")
	if code, _, errs := commandLine(t, "backup", "--data", data, file); code != exitDone {
		t.Fatal(errs)
	}
	if after := fmt.Sprint(entries(t, data), sha256.Sum256(readFile(t, databasePath(data)))); after != before {
		t.Errorf("the data directory was %s and is %s", before, after)
	}
	_, files := archive(t, readFile(t, file))
	if got := records(t, files["perch.db"], "memory"); len(got) != 1 {
		t.Errorf("remembered is %v", got)
	}

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"backup", "--data", data, file}, "is there already; name another file, or replace it with --force"},
		{[]string{"backup", "--data", data, out}, "is a folder"},
		{[]string{"backup", "--data", data, "--force", out}, "is a folder"},
		{[]string{"backup", "--data", filepath.Join(out, "none"), filepath.Join(out, "c.tar")}, "name its data directory with --data"},
		{[]string{"backup", "--data", data, filepath.Join(out, "none", "c.tar")}, "no such file"},
		{[]string{"restore", "--data", data, filepath.Join(out, "none.tar")}, "no such file"},
		{[]string{"backup", "--data", data}, "it is used as: perch backup FILE"},
	} {
		if code, _, errs := commandLine(t, c.args...); code == exitDone || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %d %s", c.args, code, errs)
		}
	}
	if code, text, errs := commandLine(t, "backup", "--data", data, "-"); code != exitDone {
		t.Error(errs)
	} else {
		archive(t, []byte(text))
	}
	if code, _, errs := commandLine(t, "backup", "--data", data, "--force", file); code != exitDone {
		t.Error(errs)
	}
	if got := entries(t, out); len(got) != 1 {
		t.Errorf("left over: %v", got)
	}

	fresh := filepath.Join(t.TempDir(), "elsewhere", "data")
	if code, told, errs := commandLine(t, "restore", "--data", fresh, file); code != exitDone || strings.Contains(told, "before") {
		t.Errorf("restored into nothing: %d %s %s", code, told, errs)
	}
	if got := open(t, testConfig(), fresh); got.id != h.id || len(got.memory.Search("cat", time.Now())) != 1 {
		t.Error("the appliance did not move")
	}
}

// killed leaves a socket behind, as a program does that was killed.
func killed(t *testing.T, path string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Close(fd))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) }) // who listens there removes it first
}

// TestOfflineWhileInUse: a database that is in use is nobody else's.
func TestOfflineWhileInUse(t *testing.T) {
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "b.tar")
	db, err := store.Open(databasePath(data), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	writeFile(t, file, small(t).tar(t))
	for _, args := range [][]string{{"restore", "--data", data, file}, {"backup", "--data", data, filepath.Join(t.TempDir(), "c.tar")}} {
		if code, _, errs := commandLine(t, args...); code != exitFailed || !strings.Contains(errs, "is in use by") {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	if exists(filepath.Join(data, stageName)) {
		t.Error("it was staged")
	}
}

// TestImagesComeAndGo while backups are made: every image that the database of
// one knows is in it.
func TestImagesComeAndGo(t *testing.T) {
	data := t.TempDir()
	db, err := store.Open(databasePath(data), store.Options{FlushAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	table := store.NewTable[ota.Record](db, "firmware")
	ctx, stop := context.WithCancel(t.Context())
	var catalogue sync.WaitGroup
	catalogue.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			text := fmt.Appendf(nil, "image %d", n)
			sha := fmt.Sprintf("%x", sha256.Sum256(text))
			path := filepath.Join(data, filepath.FromSlash(imagePath(sha)))
			half := filepath.Join(data, "firmware", ".upload-1")
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(half, text, 0o600), os.Rename(half, path), table.Put(sha, ota.Record{})); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Millisecond)
			if n%3 != 0 {
				if err := errors.Join(table.Delete(sha), os.Remove(path)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	seen := 0
	for range 12 {
		var log bytes.Buffer
		p, err := newPack(t.Context(), data, func(w io.Writer) error { _, err := db.Backup(w); return err }, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := p.write(t.Context(), &text); err != nil || int64(text.Len()) != p.size() {
			t.Fatalf("%d bytes of %d, %v", text.Len(), p.size(), err)
		}
		p.close()
		_, files := archive(t, text.Bytes())
		for sha := range records(t, files["perch.db"], "firmware") {
			if seen++; files[imagePath(sha)] == nil && log.Len() == 0 {
				t.Errorf("the image %s is not in the backup", sha)
			}
		}
		if log.Len() > 0 {
			t.Errorf("%s", &log)
		}
	}
	stop()
	catalogue.Wait()
	if seen < 12 {
		t.Errorf("only %d images were seen", seen)
	}
}

// TestAnImageComesDuringABackup, goes, or does both: then it is tried again.
func TestAnImageComesDuringABackup(t *testing.T) {
	data := t.TempDir()
	db, err := store.Open(databasePath(data), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	table := store.NewTable[ota.Record](db, "firmware")
	add := func(text string) (name, sha string) {
		f := image(text)
		writeFile(t, filepath.Join(data, f.name), f.text)
		sha = strings.TrimSuffix(filepath.Base(f.name), ".bin")
		if err := table.Put(sha, ota.Record{}); err != nil {
			t.Fatal(err)
		}
		return f.name, sha
	}
	remove := func(name, sha string) {
		if err := errors.Join(table.Delete(sha), os.Remove(filepath.Join(data, name))); err != nil {
			t.Fatal(err)
		}
	}
	goes, goesSHA := add("goes")
	tries := 0
	var comes string
	p, err := newPack(t.Context(), data, func(w io.Writer) error {
		tries++
		if tries == 1 {
			comes, _ = add("comes")
			both, sha := add("comes and goes")
			_, err := db.Backup(w)
			remove(both, sha)
			return err
		}
		_, err := db.Backup(w)
		remove(goes, goesSHA)
		return err
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if len(p.manifest.Files) != 3 || p.manifest.Files[1].Name != min(comes, goes) || p.manifest.Files[2].Name != max(comes, goes) || tries != 2 {
		t.Errorf("after %d tries there are %+v", tries, p.manifest.Files)
	}
	tries = 0
	p, err = newPack(t.Context(), data, func(w io.Writer) error {
		tries++
		comes, _ = add("comes later")
		_, err := db.Backup(w)
		return err
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if len(p.manifest.Files) != 3 || tries != 1 {
		t.Errorf("after %d tries there are %+v, and not %s", tries, p.manifest.Files, comes)
	}
}

// TestABackupIsStreamed: its memory does not grow with the firmware. What has
// lost its file or is damaged does not keep the rest from being saved.
func TestABackupIsStreamed(t *testing.T) {
	data := t.TempDir()
	db, err := store.Open(databasePath(data), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lost, broken := strings.Repeat("0", 64), strings.Repeat("1", 64)
	if err := store.NewTable[ota.Record](db, "firmware").Put(lost, ota.Record{}); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(data, "firmware", broken+".bin"), []byte("something else"))
	for n := range 4 {
		writeFile(t, filepath.Join(data, "firmware", "assets", fmt.Sprint(n)), make([]byte, 16<<20))
	}
	var log bytes.Buffer
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := newPack(t.Context(), data, func(w io.Writer) error { _, err := db.Backup(w); return err }, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := p.write(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 || p.size() < 64<<20 {
		t.Errorf("a backup of %d MB took %d kB", p.size()>>20, used>>10)
	}
	if len(p.manifest.Files) != 5 || !strings.Contains(log.String(), lost) || !strings.Contains(log.String(), broken) {
		t.Errorf("in the backup is %+v; log:\n%s", p.manifest.Files, &log)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.write(stopped, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that nobody waits for: %v", err)
	}
}
