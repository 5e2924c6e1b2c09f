package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/agent"
	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/ota"
	"perch/store"
	"perch/store/archive"
	"perch/store/archive/archivetest"
)

// publishImage puts an image into the catalogue and returns its hash.
func (h *running) publishImage(version string) string {
	h.T.Helper()
	var shown ota.Shown
	h.Admin(http.MethodPost, "/api/v1/firmware?board=m5stack-stack-chan", string(simrobot.Image(version, 64<<10)), &shown)
	return shown.SHA256
}

func (h *running) remember(body string) {
	h.T.Helper()
	must.Value(h.Memory.Remember(agent.Entry{Name: body, Body: body}, time.Now()))(h.T)
}

// TestBackupAndRestore makes a backup of a running appliance, changes the data, and restores the backup: the
// changes are undone.
func TestBackupAndRestore(t *testing.T) {
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "perch.tar")
	c := appliancetest.Config()
	h := open(t, c, data)
	h.remember("the cat is called Miso")
	kept := h.publishImage("1.0.0")
	archivetest.Write(t, filepath.Join(data, "firmware", "assets", "fonts.bin"), []byte("fonts"))
	archivetest.Write(t, filepath.Join(data, config.OverlayFile), []byte("name: cottage\n"))
	archivetest.Write(t, filepath.Join(data, "firmware", ".upload-1"), []byte("half"))

	h.command("backup "+file, exitDone, h.ID)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v %v", info, err)
	}
	files := archivetest.Contents(t, archivetest.Read(t, file))
	var m archive.Manifest
	must.Succeed(t, json.Unmarshal(files["manifest.json"], &m))
	if m.Format != 1 || m.Perch != "dev" || m.Schema != len(datadir.Migrations()) || m.Appliance != h.ID || time.Since(m.Created) > time.Minute ||
		len(m.Files) != 4 || string(files[config.OverlayFile]) != "name: cottage\n" ||
		m.Files[0].Name != "perch.db" || files["firmware/"+kept+".bin"] == nil || string(files["firmware/assets/fonts.bin"]) != "fonts" {
		t.Errorf("the backup is %+v", m)
	}
	for _, name := range []string{"admin-token", "token-key"} {
		if bytes.Contains(archivetest.Read(t, file), bytes.TrimSpace(archivetest.Read(t, filepath.Join(data, name)))) {
			t.Errorf("it holds the secret of %s", name)
		}
	}

	h.remember("the cat is gone")
	h.Admin(http.MethodDelete, "/api/v1/firmware/"+kept, "{}", nil)
	gone := h.publishImage("2.0.0")
	h.byNetwork("restore --restart "+file, exitDone, "restarts to apply the backup")
	if err := h.Wait(); !errors.Is(err, appliance.ErrRestart) {
		t.Errorf("it ends with %v", err)
	}
	h.Stop()

	h = open(t, c, data)
	if got := h.Memory.Search("cat", time.Now()); len(got) != 1 || got[0].Body != "the cat is called Miso" {
		t.Errorf("remembered is %+v", got)
	}
	if list := h.Firmware.List(); len(list) != 1 || list[0].SHA256 != kept {
		t.Errorf("the catalogue is %+v", list)
	}
	got := strings.Join(archivetest.Names(t, filepath.Join(data, "firmware")), " ")
	if want := "assets/fonts.bin " + kept + ".bin"; got != want {
		t.Errorf("in the folder is %s, want %s (and not %s)", got, want, gone)
	}
	if store.Exists(filepath.Join(data, "restore")) {
		t.Error("what was staged is still there")
	}
	if before := archivetest.Records(t, archivetest.Read(t, filepath.Join(data, "perch.db.before-restore")), "memory"); len(before) != 2 {
		t.Errorf("the database of before has %v", before)
	}
}

// TestBackupWithoutAnAppliance: a backup without a running appliance reads the data directory and does not
// change it. The backup can be restored into another directory.
func TestBackupWithoutAnAppliance(t *testing.T) {
	data, out := t.TempDir(), t.TempDir()
	h := open(t, appliancetest.Config(), data)
	h.remember("the cat is called Miso")
	h.Stop()
	l := filepath.Join(data, "perch.sock")
	if store.Exists(l) {
		t.Fatal("the socket is still there")
	}
	killed(t, l)
	before := fmt.Sprint(archivetest.Names(t, data), sha256.Sum256(archivetest.Read(t, archive.DatabasePath(data))))
	file := filepath.Join(out, "b.tar")
	h.command("backup "+file, exitDone)
	if after := fmt.Sprint(archivetest.Names(t, data), sha256.Sum256(archivetest.Read(t, archive.DatabasePath(data)))); after != before {
		t.Errorf("the data directory was %s and is %s", before, after)
	}
	files := archivetest.Contents(t, archivetest.Read(t, file))
	if got := archivetest.Records(t, files["perch.db"], "memory"); len(got) != 1 {
		t.Errorf("remembered is %v", got)
	}

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"backup", "--data", data, file}, "exists already; name another file, or replace it with --force"},
		{[]string{"backup", "--data", data, out}, "is a folder"},
		{[]string{"backup", "--data", data, "--force", out}, "is a folder"},
		{[]string{"backup", "--data", filepath.Join(out, "none"), filepath.Join(out, "c.tar")}, "name its data directory with --data"},
		{[]string{"backup", "--data", data, filepath.Join(out, "none", "c.tar")}, "no such file"},
		{[]string{"restore", "--data", data, filepath.Join(out, "none.tar")}, "no such file"},
		{[]string{"backup", "--data", data}, "perch backup: it takes FILE, but 0 arguments were given"},
	} {
		if code, _, errs := commandLine(t, c.args...); code == exitDone || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %d %s", c.args, code, errs)
		}
	}
	if code, text, errs := commandLine(t, "backup", "--data", data, "-"); code != exitDone {
		t.Error(errs)
	} else {
		archivetest.Contents(t, []byte(text))
	}
	h.command("backup --force "+file, exitDone)
	if got := archivetest.Names(t, out); len(got) != 1 {
		t.Errorf("left over: %v", got)
	}

	fresh := filepath.Join(t.TempDir(), "elsewhere", "data")
	if told := bare(t, "restore "+file+" --data "+fresh, exitDone); strings.Contains(told, "before") {
		t.Errorf("restored into nothing: %s", told)
	}
	if got := open(t, appliancetest.Config(), fresh); got.ID != h.ID || len(got.Memory.Search("cat", time.Now())) != 1 {
		t.Error("the appliance did not move")
	}
}

// killed creates the file of a socket that no program serves, as a killed program leaves it.
func killed(t *testing.T, path string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Close(fd))
	}
	must.Succeed(t, err)
	t.Cleanup(func() { _ = os.Remove(path) }) // a program that listens on this path has removed the file
}

// TestABackupNeedsTheDatabaseForItself: backup and restore fail if another program uses the database.
func TestABackupNeedsTheDatabaseForItself(t *testing.T) {
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "b.tar")
	db := must.Value(store.Open(archive.DatabasePath(data), store.Options{}))(t)
	defer db.Close()
	other := t.TempDir()
	empty, err := store.Open(archive.DatabasePath(other), store.Options{})
	if err == nil {
		err = empty.Close()
	}
	must.Succeed(t, err)
	bare(t, "backup "+file+" --data "+other, exitDone)
	bare(t, "restore "+file+" --data "+data, exitFailed, "is in use by")
	bare(t, "backup "+filepath.Join(t.TempDir(), "c.tar")+" --data "+data, exitFailed, "is in use by")
	if store.Exists(filepath.Join(data, "restore")) {
		t.Error("it was staged")
	}
}

// TestRestoreWhileItRuns: a restore into a running appliance is staged, and applied by the next start. An invalid
// backup is refused with an error, even if the client is still sending.
func TestRestoreWhileItRuns(t *testing.T) {
	data, out := t.TempDir(), t.TempDir()
	h := open(t, appliancetest.Config(), data)
	h.remember("the cat is called Miso")
	file := filepath.Join(out, "b.tar")
	h.command("backup "+file, exitDone)
	bad := filepath.Join(out, "bad.tar")
	archivetest.Write(t, bad, append([]byte("hello"), make([]byte, 8<<20)...))
	h.command("restore "+bad, exitFailed, "not a backup of Perch")
	h.byNetwork("restore "+bad, exitFailed, "not a backup of Perch")
	if store.Exists(filepath.Join(data, "restore")) {
		t.Error("it was staged")
	}
	h.Expect(http.StatusUnauthorized, "", http.MethodGet, "/api/v1/backup", "")
	h.Expect(http.StatusUnauthorized, "", http.MethodPost, "/api/v1/restore", "")
	h.command("restore "+file, exitDone, "restart to apply")
	h.remember("the cat is gone")
	h.Stop()
	h = open(t, appliancetest.Config(), data)
	if got := h.Memory.Search("cat", time.Now()); len(got) != 1 {
		t.Errorf("remembered is %+v", got)
	}
}
