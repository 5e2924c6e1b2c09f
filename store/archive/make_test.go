package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"perch/must"
	"perch/store"
	"perch/store/archive/archivetest"
)

func TestBackupRetriesWhenFilesChange(t *testing.T) {
	data := t.TempDir()
	db := must.Value(store.Open(DatabasePath(data), store.Options{}))(t)
	defer db.Close()
	table := store.NewTable[map[string]string](db, "firmware")
	add := func(text string) (name, sha string) {
		f := image(text)
		archivetest.Write(t, filepath.Join(data, f.name), f.text)
		sha = strings.TrimSuffix(filepath.Base(f.name), ".bin")
		must.Succeed(t, table.Put(sha, map[string]string{}))
		return f.name, sha
	}
	remove := func(name, sha string) {
		must.Succeed(t, errors.Join(table.Delete(sha), os.Remove(filepath.Join(data, name))))
	}
	goes, goesSHA := add("goes")
	tries := 0
	var comes string
	p, err := at(data, slog.New(slog.DiscardHandler)).makeBackup(t.Context(), func(w io.Writer) error {
		tries++
		if tries == 1 {
			comes, _ = add("comes")
			both, sha := add("comes and goes")
			err := db.Backup(w)
			remove(both, sha)
			return err
		}
		err := db.Backup(w)
		remove(goes, goesSHA)
		return err
	})
	must.Succeed(t, err)
	defer p.Close()
	if len(p.Manifest.Files) != 4 || p.Manifest.Files[1].Name != min(comes, goes) || p.Manifest.Files[2].Name != max(comes, goes) || tries != 2 {
		t.Errorf("after %d tries there are %+v", tries, p.Manifest.Files)
	}
	tries = 0
	p, err = at(data, slog.New(slog.DiscardHandler)).makeBackup(t.Context(), func(w io.Writer) error {
		tries++
		comes, _ = add("comes later")
		err := db.Backup(w)
		return err
	})
	must.Succeed(t, err)
	defer p.Close()
	if len(p.Manifest.Files) != 4 || tries != 1 {
		t.Errorf("after %d tries there are %+v, and not %s", tries, p.Manifest.Files, comes)
	}
}

// TestBackupIsStreamed checks that a large backup takes little memory, and that missing and damaged files
// do not prevent the backup.
func TestBackupIsStreamed(t *testing.T) {
	data := t.TempDir()
	db := must.Value(store.Open(DatabasePath(data), store.Options{}))(t)
	defer db.Close()
	lost, broken := strings.Repeat("0", 64), strings.Repeat("1", 64)
	must.Succeed(t, store.NewTable[map[string]string](db, "firmware").Put(lost, map[string]string{}))
	archivetest.Write(t, filepath.Join(data, "firmware", broken+".bin"), []byte("something else"))
	for n := range 4 {
		archivetest.Write(t, filepath.Join(data, "firmware", "assets", fmt.Sprint(n)), make([]byte, 16<<20))
	}
	var log bytes.Buffer
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := must.Value(at(data, slog.New(slog.NewTextHandler(&log, nil))).BackupRunning(t.Context(), db))(t)
	defer p.Close()
	must.Succeed(t, p.Write(t.Context(), io.Discard))
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 || p.Size() < 64<<20 {
		t.Errorf("a backup of %d MB took %d kB", p.Size()>>20, used>>10)
	}
	if len(p.Manifest.Files) != 6 || !strings.Contains(log.String(), lost) || !strings.Contains(log.String(), broken) {
		t.Errorf("in the backup is %+v; log:\n%s", p.Manifest.Files, &log)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Write(stopped, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that nobody waits for: %v", err)
	}
}
