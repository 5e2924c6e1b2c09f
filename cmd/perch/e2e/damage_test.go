package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/doctor"
	"perch/cmd/perch/machine"
	"perch/device"
	"perch/must"
	"perch/store"
	"perch/store/archive"
	"perch/store/archive/archivetest"
	"perch/store/storetest"
)

const (
	page        = 4096 // size of a page of the database, in bytes
	knownRobots = 60   // number of robots in the damaged databases
	knownFacts  = 250  // number of facts in the damaged databases
)

func robotNumber(n int) device.ID { return device.ID(fmt.Sprintf("a0b1c2d3%04x", n)) }

// usedData returns the data directory of an appliance with robots and facts, and the hashes of its firmware images.
func usedData(t *testing.T) (data string, images []string) {
	t.Helper()
	data = t.TempDir()
	h := open(t, appliancetest.Config(), data)
	for _, v := range []string{"1.3.0", "1.4.0"} {
		images = append(images, h.publishImage(v))
	}
	robots, memory := store.NewTable[device.Robot](h.DB, "robots"), store.NewTable[agent.Entry](h.DB, "memory")
	for n := range knownRobots {
		robots.PutSoon(string(robotNumber(n)), device.Robot{ID: robotNumber(n), Bound: true, Named: true, Board: strings.Repeat("b", 900)})
	}
	for n := range knownFacts {
		memory.PutSoon(fmt.Sprintf("%04d", n), agent.Entry{ID: fmt.Sprintf("%04d", n), Body: fmt.Sprintf("fact %d %s", n, strings.Repeat("x", 300)),
			Type: agent.MemoryUser, Created: time.Now()})
	}
	must.Succeed(t, h.DB.Flush())
	h.remember("the last fact") // in a transaction of its own
	h.Stop()
	return data, images
}

// copyOf returns a copy of a data directory.
func copyOf(t *testing.T, data string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	err := os.CopyFS(to, os.DirFS(data))
	for _, name := range []string{"token-key", "admin-token", "perch.db"} { // CopyFS does not keep the permissions
		if store.Exists(filepath.Join(to, name)) {
			err = errors.Join(err, os.Chmod(filepath.Join(to, name), 0o600))
		}
	}
	must.Succeed(t, err)
	return to
}

func zero(t *testing.T, file string, n int) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(make([]byte, page), int64(n)*page)
		err = errors.Join(err, f.Close())
	}
	must.Succeed(t, err)
}

// imagesIn returns the hashes of all firmware images in a data directory.
func imagesIn(t *testing.T, data string) (found []string) {
	t.Helper()
	for _, name := range archivetest.Names(t, filepath.Join(data, "firmware")) {
		if sha, is := strings.CutSuffix(filepath.Base(name), ".bin"); is {
			found = append(found, sha)
		}
	}
	return found
}

// TestDamagedPages: an appliance starts if one page of its database was overwritten with zeros. It reports lost
// records, deletes no firmware image, and keeps what it acknowledges afterwards.
func TestDamagedPages(t *testing.T) {
	t.Parallel()
	data, images := usedData(t)
	file := archivetest.Read(t, archive.DatabasePath(data))
	var used []int
	for n := range len(file) / page {
		if n < 2 || file[n*page+10]|file[n*page+11] != 0 {
			used = append(used, n)
		}
	}
	damaged := 0
	for i, n := range used {
		// Damage the first two pages, the last two, which hold the list of tables, and some of the others.
		if i > 1 && i < len(used)-2 && i%6 > 0 {
			continue
		}
		damaged++
		data := copyOf(t, data)
		zero(t, archive.DatabasePath(data), n)
		c := appliancetest.Config()
		c.Bridge.Key = appliancetest.Key
		h := open(t, c, data)
		part := h.Part("store")
		robots, facts := h.Robots.List(), h.Memory.Search("fact", time.Now())
		if missing := knownRobots - len(robots) + knownFacts + 1 - len(facts); missing > 0 &&
			(part.OK || part.Vital || !strings.Contains(part.Note, "lost: ") || strings.Contains(part.Note, data) ||
				strings.Contains(part.Note, "a0b1c2d3") || !strings.Contains(h.Logged.String(), "the database was damaged")) {
			t.Errorf("page %d: %d records are missing, and /ready says %+v", n, missing, part)
		}
		if len(robots) < knownRobots-20 || len(facts) < knownFacts-20 {
			t.Errorf("page %d: there are %d robots and %d facts, and more could be read", n, len(robots), len(facts))
		}
		for _, sha := range images {
			if !slices.Contains(imagesIn(t, data), sha) {
				t.Errorf("page %d: an image is deleted", n)
			}
		}
		h.Expect(http.StatusOK, "", http.MethodPost, "/api/voice/remember", `{"fact":"it was mended"}`, "Authorization", "Bearer "+appliancetest.Key)
		h.Stop()
		h = open(t, c, data)
		if got := h.Memory.Search("it was mended", time.Now()); len(got) != 1 {
			t.Errorf("page %d: what was acknowledged is not there: %v", n, got)
		}
		if again := h.Part("store"); n > 1 && again.Note != part.Note {
			t.Errorf("page %d: after another start /ready says %+v", n, again)
		}
		h.Stop()
	}
	t.Logf("%d of %d pages in use", damaged, len(used))
	if damaged < 5 {
		t.Error("these are too few")
	}
}

// TestAPageIsDamagedWhileItRuns: after damage during the run, the appliance acknowledges nothing that it cannot store,
// and reports the damage. The next start keeps all records that can be read.
func TestAPageIsDamagedWhileItRuns(t *testing.T) {
	t.Parallel()
	data, _ := usedData(t)
	c := appliancetest.Config()
	c.Bridge.Key = appliancetest.Key
	h := open(t, c, data)
	n := bytes.Index(archivetest.Read(t, archive.DatabasePath(data)), []byte("fact 77 ")) / page
	zero(t, archive.DatabasePath(data), n)
	remember := func(fact string) (int, string) {
		return h.Request(http.MethodPost, "/api/voice/remember", fmt.Sprintf(`{"fact":%q}`, fact), "Authorization", "Bearer "+appliancetest.Key)
	}
	if status, text := remember("it is raining"); status != http.StatusServiceUnavailable || !strings.Contains(text, `"database_damaged"`) ||
		strings.Contains(text, data) {
		t.Errorf("remember: %d %s", status, text)
	}
	if p := h.Part("store"); p.OK || !p.Vital || !strings.Contains(p.Note, "damaged") || strings.Contains(p.Note, data) {
		t.Errorf("/ready says %+v", p)
	}
	h.Expect(http.StatusServiceUnavailable, "", http.MethodGet, "/health", "")
	if out := h.command("health", exitFailed, "store: "); strings.Count(out, "\n") != 1 {
		t.Errorf("perch health says %s", out)
	}
	h.Expect(http.StatusServiceUnavailable, `"database_damaged"`, http.MethodGet, "/api/v1/backup", "", "Authorization", "Bearer "+h.OwnerToken())
	h.Stop()
	h = open(t, c, data)
	if out := h.command("health", exitDone); out != "healthy\n" {
		t.Errorf("after a restart perch health says %s", out)
	}
	if p := h.Part("store"); p.OK || p.Vital || len(h.Robots.List()) != knownRobots || len(h.Memory.Search("fact", time.Now())) < knownFacts-20 {
		t.Errorf("after a restart /ready says %+v", p)
	}
	if status, text := remember("it is raining"); status != http.StatusOK {
		t.Errorf("after a restart: %d %s", status, text)
	}
	h.Stop()
	if ok, note := diagnosed(t, data); ok || !strings.Contains(note, filepath.Join(data, "perch.db.damaged-")) {
		t.Errorf("the doctor says %s", note)
	}
	aside, _ := filepath.Glob(filepath.Join(data, "perch.db.damaged-*"))
	must.Succeed(t, os.Remove(aside[0]))
	if ok, note := diagnosed(t, data); !ok {
		t.Errorf("once that is removed the doctor says %s", note)
	}
	n = bytes.Index(archivetest.Read(t, archive.DatabasePath(data)), []byte("fact 99 ")) / page
	zero(t, archive.DatabasePath(data), n)
	before := archivetest.Read(t, archive.DatabasePath(data))
	if ok, note := diagnosed(t, data); ok || !strings.Contains(note, "the next start keeps the") || !strings.Contains(note, "lost: ") ||
		!bytes.Equal(before, archivetest.Read(t, archive.DatabasePath(data))) {
		t.Errorf("of a damaged database the doctor says %s", note)
	}
}

// diagnosed returns the doctor's finding about the database.
func diagnosed(t *testing.T, data string) (ok bool, note string) {
	t.Helper()
	c := appliancetest.Config()
	d := doctor.New(doctor.Options{Config: &c, Data: data, Version: "dev"})
	t.Cleanup(d.Close)
	d.CheckDatabase()
	f := d.Findings[0]
	return f.Ok, f.Note
}

// TestNoDatabaseWhereOneWas: if the data directory has secrets and images, a start with a missing, empty or foreign
// database fails with a remedy, and changes nothing. After a restore, or with a flag, the appliance starts.
func TestNoDatabaseWhereOneWas(t *testing.T) {
	t.Parallel()
	whole, images := usedData(t)
	saved := filepath.Join(t.TempDir(), "b.tar")
	bare(t, "backup "+saved+" --data "+whole, exitDone)
	for name, c := range map[string]struct {
		do    func(path string) error
		says  string
		moved bool // whether do removes the database
	}{
		"moved away": {func(path string) error { return os.Rename(path, path+".old") }, "is missing", true},
		"empty":      {func(path string) error { return os.Truncate(path, 0) }, "is empty", false},
		"wiped":      {func(path string) error { return os.WriteFile(path, make([]byte, 4*page), 0o600) }, "is empty", false},
		"foreign": {func(path string) error {
			return os.WriteFile(path, append([]byte("SQLite format 3\x00"), make([]byte, 40_000)...), 0o600)
		}, "not a Perch database", false},
		"another program's": {func(path string) error {
			fresh := filepath.Join(t.TempDir(), "fresh.db")
			db, err := store.Open(fresh, store.Options{})
			if err != nil {
				return err
			}
			_ = db.Close() // nothing was written
			return os.WriteFile(path, bytes.ReplaceAll(archivetest.Read(t, fresh), []byte("schema"), []byte("theirs")), 0o600)
		}, "not a Perch database", false},
	} {
		t.Run(name, func(t *testing.T) {
			data := copyOf(t, whole)
			path := archive.DatabasePath(data)
			must.Succeed(t, c.do(path))
			before := fmt.Sprint(archivetest.Names(t, data))
			refused := func() {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // ends an appliance that starts by mistake
				defer cancel()
				var said bytes.Buffer
				code := execute(ctx, t, io.Discard, &said, "serve", "--data", data, "--listen", "127.0.0.1:0", "--local", "127.0.0.1:0")
				errs := said.String()
				if code != exitFailed || !strings.Contains(errs, c.says) || !strings.Contains(errs, path) ||
					!strings.Contains(errs, "perch restore") || !strings.Contains(errs, "perch serve --new-database") {
					t.Errorf("%d %s", code, errs)
				}
				if after := fmt.Sprint(archivetest.Names(t, data)); after != before {
					t.Errorf("there was %s and is %s", before, after)
				}
			}
			refused()
			if ok, note := diagnosed(t, data); ok || !strings.Contains(note, c.says) {
				t.Errorf("the doctor says %s", note)
			}
			restored := copyOf(t, data)
			bare(t, "restore "+saved+" --data "+restored, exitDone)
			if h := open(t, appliancetest.Config(), restored); len(h.Robots.List()) != knownRobots {
				t.Errorf("restored, there are %d robots", len(h.Robots.List()))
			}
			if c.says == "not a Perch database" { // must be moved away first
				must.Succeed(t, os.Rename(path, path+".old"))
			}
			begun := appliancetest.Config()
			log := slog.New(slog.NewTextHandler(io.Discard, nil))
			a, err := appliance.New(&begun, appliance.Options{Version: "dev", Built: machine.BuiltAt(""), Data: data, Log: log, NewDatabase: true})
			must.Succeed(t, err)
			if got := len(a.Robots.List()); got != 0 {
				t.Errorf("begun anew, there are %d robots", got)
			}
			a.Close()
			for _, sha := range images {
				if !slices.Contains(imagesIn(t, data), sha) {
					t.Error("an image is deleted")
				}
			}
			open(t, appliancetest.Config(), data) // later starts need no flag
		})
	}
}

// TestAFirstStartCutOff: if a power failure interrupts the first start at any point, the next start succeeds.
func TestAFirstStartCutOff(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	h := open(t, appliancetest.Config(), whole)
	h.Stop()
	made := []string{"perch.db", "token-key", "firmware", "admin-token"} // in the order in which a start creates them
	for n := range len(made) + 1 {
		data := t.TempDir()
		for _, name := range made[:n] {
			if name == "firmware" {
				must.Succeed(t, os.Mkdir(filepath.Join(data, name), 0o750))
				continue
			}
			archivetest.Write(t, filepath.Join(data, name), archivetest.Read(t, filepath.Join(whole, name)))
		}
		open(t, appliancetest.Config(), data).Stop()
	}
	for _, left := range []map[string]string{{"perch.db": ""}, {"perch.db.new": "half"}, {"perch.db": "", "perch.db.new": "half"}} {
		data := t.TempDir()
		for name, text := range left {
			archivetest.Write(t, filepath.Join(data, name), []byte(text))
		}
		open(t, appliancetest.Config(), data).Stop()
	}
}

// TestBackupOnAFullDisk: the error of a backup on a full disk contains the cause and the remedy.
func TestBackupOnAFullDisk(t *testing.T) {
	data := storetest.SmallDisk(t, "8m")
	h := open(t, appliancetest.Config(), data)
	h.remember("the cat is called Miso")
	filler := fill(t, data)
	status, text := h.Owner(http.MethodGet, "/api/v1/backup", "")
	var told struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(text), &told); err != nil || status != http.StatusInsufficientStorage || told.Error.Code != "disk_full" ||
		!strings.Contains(told.Error.Message, "free some space") {
		t.Errorf("%d %.300s", status, text)
	}
	backup := "backup " + filepath.Join(t.TempDir(), "b.tar")
	h.command(backup, exitFailed, "free some space")
	must.Succeed(t, os.Remove(filler))
	h.Expect(http.StatusOK, "", http.MethodGet, "/api/v1/backup", "", "Authorization", "Bearer "+h.OwnerToken())
	fill(t, data)
	h.Stop()
	h.command(backup, exitFailed, "free some space")
}
