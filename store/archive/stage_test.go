package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/must"
	"perch/ota"
	"perch/store"
	"perch/store/archive/archivetest"
)

// at returns a Directory for the path data, without migrations.
func at(data string, log *slog.Logger) Directory {
	return Directory{Path: data, Perch: "dev", Folder: firmware(), Log: log}
}

// firmware returns a Folder for files of firmware.
func firmware() Folder {
	return Folder{Name: "firmware", Below: []string{ota.AssetsFolder}, Allowed: ota.AllowedFile, Table: "firmware", FileOf: ota.ImageFile}
}

// database returns the content of a database with one record, whose value is which.
func database(t testing.TB, which string, migrations ...store.Migration) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), which+".db")
	db := must.Value(store.Open(path, store.Options{Migrations: migrations}))(t)
	must.Succeed(t, errors.Join(store.NewTable[string](db, "is").Put("which", which), db.Close()))
	return archivetest.Read(t, path)
}

// parcel is a valid or invalid backup that a test builds from parts.
type parcel struct {
	manifest Manifest
	files    []entry
}

type entry struct {
	name string
	text []byte
	kind byte
}

func newParcel(schema int, files ...entry) *parcel {
	p := &parcel{manifest: Manifest{Format: 1, Perch: "1.0", Schema: schema, Created: time.Unix(1e9, 0).UTC(), Appliance: "0badcafe"}, files: files}
	for _, f := range files {
		p.manifest.Files = append(p.manifest.Files, File{f.name, int64(len(f.text)), fmt.Sprintf("%x", sha256.Sum256(f.text))})
	}
	return p
}

// image returns a firmware image, named by its hash.
func image(text string) entry {
	return entry{name: "firmware/" + ota.ImageFile(fmt.Sprintf("%x", sha256.Sum256([]byte(text)))), text: []byte(text)}
}

// small returns a valid backup, whose content is called "new" in these tests.
func small(t testing.TB) *parcel {
	return newParcel(0, entry{name: "perch.db", text: database(t, "new")}, image("new"),
		entry{name: "firmware/assets/fonts", text: []byte("new fonts")}, entry{name: settingsName, text: []byte("name: new\n")})
}

func (p *parcel) tar(t testing.TB) []byte {
	t.Helper()
	text := must.Value(json.Marshal(p.manifest))(t)
	return pile(t, append([]entry{{name: manifestName, text: text}}, p.files...)...)
}

func pile(t testing.TB, files ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		head := &tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(f.text)), Typeflag: tar.TypeReg}
		if f.kind != 0 {
			head.Typeflag, head.Size, head.Linkname = f.kind, 0, "/etc/passwd"
		}
		err := w.WriteHeader(head)
		if err == nil && head.Size > 0 {
			_, err = w.Write(f.text)
		}
		must.Succeed(t, err)
	}
	must.Succeed(t, w.Close())
	return out.Bytes()
}

// lived returns a new data directory with the content that is called "old" in these tests.
func lived(t testing.TB) string { return lives(t, t.TempDir()) }

// lives writes a database, an image, settings and a secret to a data directory, and returns the directory.
func lives(t testing.TB, data string) string {
	t.Helper()
	old := image("old")
	archivetest.Write(t, DatabasePath(data), database(t, "old"))
	archivetest.Write(t, filepath.Join(data, old.name), old.text)
	archivetest.Write(t, filepath.Join(data, settingsName), []byte("name: old\n"))
	archivetest.Write(t, filepath.Join(data, "token-key"), []byte("the secret of this appliance"))
	return data
}

// which returns "old" or "new" for the content of a data directory. It fails the test if the content is
// mixed.
func which(t *testing.T, data string) string {
	t.Helper()
	db := must.Value(store.Open(DatabasePath(data), store.Options{}))(t)
	defer db.Close()
	is, _, err := store.NewTable[string](db, "is").Get("which")
	must.Succeed(t, err)
	want := map[string][]string{"old": {filepath.Base(image("old").name)}, "new": {"assets/fonts", filepath.Base(image("new").name)}}[is]
	if got := archivetest.Names(t, filepath.Join(data, "firmware")); !slices.Equal(got, want) {
		t.Fatalf("the database is %s, the firmware %v", is, got)
	}
	if settings := archivetest.Read(t, filepath.Join(data, settingsName)); string(settings) != "name: "+is+"\n" {
		t.Errorf("the database is %s, the settings are %s", is, settings)
	}
	if secret := archivetest.Read(t, filepath.Join(data, "token-key")); string(secret) != "the secret of this appliance" {
		t.Errorf("the secret is %s", secret)
	}
	if store.Exists(filepath.Join(data, stageName)) {
		t.Error("what was staged is still there")
	}
	return is
}

func TestInvalidBackupChangesNothing(t *testing.T) {
	db := entry{name: "perch.db", text: database(t, "new")}
	outside := []byte("from outside")
	change := func(f func(p *parcel)) []byte {
		p := small(t)
		f(p)
		return p.tar(t)
	}
	alone := func(f entry) []byte { return newParcel(0, db, f).tar(t) }
	newer := newParcel(1, entry{name: "perch.db", text: database(t, "new",
		store.Migration{Name: "later", Apply: func(*store.Tx) error { return nil }})})
	whole := small(t).tar(t)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	pages := bytes.Clone(db.text)
	copy(pages[2*4096:], bytes.Repeat([]byte{0xff}, 4096))
	swapped := bytes.Clone(db.text)
	for _, at := range []int{16, 4096 + 16} {
		slices.Reverse(swapped[at : at+4])
	}
	for name, c := range map[string]struct {
		text       []byte
		word, says string
	}{
		"nothing":                     {nil, "bad_backup", "it is empty"},
		"text":                        {bytes.Repeat([]byte("hello\n"), 200), "bad_backup", "not a tar file"},
		"zeros":                       {make([]byte, 4096), "bad_backup", "it is empty"},
		"half of it":                  {whole[:len(whole)/2], "bad_backup", "ends in the middle"},
		"without its end":             {whole[:len(whole)-2048], "bad_backup", "missing"},
		"a bit is wrong":              {flipped, "bad_backup", "does not match the manifest"},
		"no manifest":                 {pile(t, db), "bad_backup", "begin with a manifest.json"},
		"the manifest is a link":      {pile(t, entry{name: manifestName, kind: tar.TypeSymlink}), "bad_backup", "begin with"},
		"the manifest is no JSON":     {pile(t, entry{name: manifestName, text: []byte("{")}, db), "bad_backup", "cannot be read"},
		"a manifest without end":      {pile(t, entry{name: manifestName, text: make([]byte, 1<<20)}, db), "bad_backup", "begin with"},
		"a newer form":                {change(func(p *parcel) { p.manifest.Format = 2 }), "newer_backup", "made by a newer Perch"},
		"no form":                     {change(func(p *parcel) { p.manifest.Format = 0 }), "bad_backup", "format 0"},
		"too many files":              {change(func(p *parcel) { p.manifest.Files = make([]File, 300) }), "bad_backup", "300 files"},
		"no database":                 {newParcel(0, image("new")).tar(t), "bad_backup", "no perch.db"},
		"a file twice":                {newParcel(0, db, db).tar(t), "bad_backup", "twice"},
		"a file is missing":           {change(func(p *parcel) { p.files = p.files[:1] }), "bad_backup", "missing"},
		"a file too many":             {change(func(p *parcel) { p.files = append(p.files, image("more")) }), "bad_backup", "does not match the manifest"},
		"a file is longer":            {change(func(p *parcel) { p.files[1].text = append(p.files[1].text, 0) }), "bad_backup", "does not match the manifest"},
		"an absolute name":            {alone(entry{name: "/etc/passwd", text: outside}), "bad_backup", "cannot contain"},
		"a name that climbs":          {alone(entry{name: "firmware/../../x", text: outside}), "bad_backup", "cannot contain"},
		"a name that climbs in names": {alone(entry{name: "firmware/assets/..", text: outside}), "bad_backup", "cannot contain"},
		"a secret":                    {alone(entry{name: "token-key", text: outside}), "bad_backup", "cannot contain"},
		"the marker":                  {alone(entry{name: "ready", text: outside}), "bad_backup", "cannot contain"},
		"a hidden asset":              {alone(entry{name: "firmware/assets/.upload-1", text: outside}), "bad_backup", "cannot contain"},
		"an image under a wrong name": {alone(entry{name: "firmware/" + ota.ImageFile(strings.Repeat("0", 64)), text: outside}), "bad_backup", "another hash than its name"},
		"a hash that is none":         {change(func(p *parcel) { p.manifest.Files[2].SHA256 = "../../x" }), "bad_backup", "hash"},
		"a size that is none":         {change(func(p *parcel) { p.manifest.Files[2].Size = -1 }), "bad_backup", "cannot have"},
		"an image too large":          {change(func(p *parcel) { p.manifest.Files[1].Size = 17 << 20 }), "bad_backup", "cannot have"},
		"a database too large":        {change(func(p *parcel) { p.manifest.Files[0].Size = 1 << 40 }), "bad_backup", "cannot have"},
		"a database for no disk":      {change(func(p *parcel) { p.manifest.Files[0].Size = 4 << 30 }), "", ""}, // some disks have enough space
		"a link for a file":           {change(func(p *parcel) { p.files[2].kind = tar.TypeSymlink }), "bad_backup", "does not match the manifest"},
		"a hard link":                 {change(func(p *parcel) { p.files[2].kind = tar.TypeLink }), "bad_backup", "does not match the manifest"},
		"a folder":                    {change(func(p *parcel) { p.files[2].kind = tar.TypeDir }), "bad_backup", "does not match the manifest"},
		"a device":                    {change(func(p *parcel) { p.files[2].kind = tar.TypeBlock }), "bad_backup", "does not match the manifest"},
		"a newer database":            {newer.tar(t), "newer_backup", "schema 1, this one knows 0"},
		"another schema than it says": {change(func(p *parcel) { p.manifest.Schema = 3 }), "bad_backup", "says schema 3"},
		"a damaged database":          {newParcel(0, entry{name: "perch.db", text: pages}).tar(t), "bad_backup", "or not a Perch database"},
		"of another byte order":       {newParcel(0, entry{name: "perch.db", text: swapped}).tar(t), "bad_backup", "another byte order"},
		"another program's database":  {newParcel(0, entry{name: "perch.db", text: []byte("SQLite format 3")}).tar(t), "bad_backup", "no database"},
	} {
		t.Run(name, func(t *testing.T) {
			data := lived(t)
			_, _, err := at(data, slog.Default()).Restore(t.Context(), bytes.NewReader(c.text))
			var told store.Shown
			if err == nil || c.word != "" && (!errors.As(err, &told) || told.Code() != c.word || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %s %s", err, c.word, c.says)
			}
			if got := which(t, data); got != "old" {
				t.Errorf("now it is %s", got)
			}
			if store.Exists(filepath.Join(data, previousName)) {
				t.Error("a database was put aside")
			}
		})
	}
}

func TestRestoreTwiceKeepsThePreviousDatabase(t *testing.T) {
	data := lived(t)
	for _, before := range []string{"old", "new"} {
		m, _, err := at(data, slog.Default()).Restore(t.Context(), bytes.NewReader(small(t).tar(t)))
		if err != nil || m.Appliance != "0badcafe" {
			t.Fatalf("%v, %v", m, err)
		}
		if got := which(t, data); got != "new" {
			t.Errorf("now it is %s", got)
		}
		if got := archivetest.Records(t, archivetest.Read(t, filepath.Join(data, previousName)), "is")["which"]; got != `"`+before+`"` {
			t.Errorf("the database of before is %s, not %s", got, before)
		}
	}
	for name, mode := range map[string]os.FileMode{"perch.db": 0o600, settingsName: 0o600, image("new").name: 0o640, "firmware": 0o750} {
		if info, err := os.Stat(filepath.Join(data, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if list, err := os.ReadDir(data); err != nil || len(list) != 5 {
		t.Errorf("left over: %v, %v", list, err)
	}
}

func TestSettingsAreRestored(t *testing.T) {
	data := lived(t)
	before := newParcel(0, entry{name: "perch.db", text: database(t, "new")})
	if _, _, err := at(data, slog.Default()).Restore(t.Context(), bytes.NewReader(before.tar(t))); err != nil {
		t.Fatal(err)
	}
	if text := archivetest.Read(t, filepath.Join(data, settingsName)); string(text) != "name: old\n" {
		t.Errorf("after a backup from before there were settings: %q", text)
	}
	none := t.TempDir()
	archivetest.Write(t, DatabasePath(none), database(t, "none"))
	made := must.Value(at(none, slog.Default()).BackupStopped(t.Context()))(t)
	defer made.Close()
	var backup bytes.Buffer
	must.Succeed(t, made.Write(t.Context(), &backup))
	if _, _, err := at(data, slog.Default()).Restore(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	if text := archivetest.Read(t, filepath.Join(data, settingsName)); len(text) > 0 {
		t.Errorf("after a backup without settings: %q", text)
	}
}

func TestRestoredFilesBelongToTheDirectorysOwner(t *testing.T) {
	data := lived(t)
	if err := os.Chown(data, 12345, 12345); err != nil {
		t.Skipf("only an administrator can give files away: %v", err)
	}
	if _, _, err := at(data, slog.Default()).Restore(t.Context(), bytes.NewReader(small(t).tar(t))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"perch.db", "firmware", image("new").name, "firmware/assets/fonts"} {
		var info syscall.Stat_t
		if err := syscall.Stat(filepath.Join(data, name), &info); err != nil || info.Uid != 12345 || info.Gid != 12345 {
			t.Errorf("%s belongs to %d:%d, %v", name, info.Uid, info.Gid, err)
		}
	}
}

func TestLinksAndMountsAreNotReplaced(t *testing.T) {
	for _, name := range []string{"perch.db", "firmware"} {
		data := lived(t)
		elsewhere := filepath.Join(t.TempDir(), name)
		must.Succeed(t, errors.Join(os.Rename(filepath.Join(data, name), elsewhere), os.Symlink(elsewhere, filepath.Join(data, name))))
		var told store.Shown
		if _, _, err := at(data, slog.Default()).Restore(t.Context(), bytes.NewReader(small(t).tar(t))); !errors.As(err, &told) ||
			told.Code() != "not_replaceable" {
			t.Errorf("%s: %v", name, err)
		}
		if store.Exists(filepath.Join(data, stageName)) {
			t.Error("it was staged")
		}
	}
}

// stagedIn returns a data directory with old content in which the backup small is staged.
func stagedIn(t *testing.T) string {
	t.Helper()
	data := lived(t)
	must.Value(at(data, slog.Default()).Stage(t.Context(), bytes.NewReader(small(t).tar(t))))(t)
	return data
}

func finish(t *testing.T, data string) {
	t.Helper()
	must.Succeed(t, at(data, slog.New(slog.DiscardHandler)).FinishRestore())
}

func TestSwapIsFinishedAfterPowerCut(t *testing.T) {
	steps := len(at("x", slog.Default()).swapSteps())
	cuts := map[string]func(t *testing.T, data string) (want string){
		"while it arrives": func(t *testing.T, data string) string {
			must.Succeed(t, os.Remove(filepath.Join(data, stageName, markerName)))
			return "old"
		},
		"before the marker has its name": func(t *testing.T, data string) string {
			marker := filepath.Join(data, stageName, markerName)
			must.Succeed(t, os.Rename(marker, marker+".new"))
			return "old"
		},
		"while the database is linked": func(t *testing.T, data string) string {
			must.Succeed(t, os.Link(DatabasePath(data), filepath.Join(data, previousName+".new")))
			return "new"
		},
		"when both names are of one file": func(t *testing.T, data string) string {
			kept := filepath.Join(data, previousName)
			must.Succeed(t, errors.Join(os.Link(DatabasePath(data), kept), os.Link(DatabasePath(data), kept+".new")))
			return "new"
		},
		"where there are no links": func(t *testing.T, data string) string {
			must.Succeed(t, os.Rename(DatabasePath(data), filepath.Join(data, previousName)))
			return "new"
		},
		"while it is swept": func(t *testing.T, data string) string {
			for _, s := range at(data, slog.Default()).swapSteps() {
				must.Succeed(t, s.run())
			}
			must.Succeed(t, os.RemoveAll(filepath.Join(data, stageName, "before")))
			return "new"
		},
	}
	for first := range steps + 1 {
		for second := range steps + 1 {
			cuts[fmt.Sprintf("after %d and %d steps", first, second)] = func(t *testing.T, data string) string {
				for _, s := range append(at(data, slog.Default()).swapSteps()[:first:first], at(data, slog.Default()).swapSteps()[:second]...) {
					if err := s.run(); err != nil {
						t.Fatalf("%s: %v", s.name, err)
					}
				}
				return "new"
			}
		}
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			data := stagedIn(t)
			want := cut(t, data)
			finish(t, data)
			if got := which(t, data); got != want {
				t.Errorf("now it is %s, want %s", got, want)
			}
			if kept := filepath.Join(data, previousName); store.Exists(kept) != (want == "new") || want == "new" &&
				archivetest.Records(t, archivetest.Read(t, kept), "is")["which"] != `"old"` {
				t.Error("the database of before is not kept")
			}
			if store.Exists(filepath.Join(data, previousName+".new")) {
				t.Error("something is left over")
			}
		})
	}
}

func TestDamagedStagedBackupIsNotSwappedIn(t *testing.T) {
	for _, name := range []string{"perch.db", image("new").name, markerName} {
		data := stagedIn(t)
		archivetest.Write(t, filepath.Join(data, stageName, name), []byte("rotten"))
		var log bytes.Buffer
		must.Succeed(t, at(data, slog.New(slog.NewTextHandler(&log, nil))).FinishRestore())
		if got := which(t, data); got != "old" || !strings.Contains(log.String(), "is damaged and is not restored") {
			t.Errorf("%s: now it is %s; log:\n%s", name, got, &log)
		}
	}
}

// TestDamagedStagedBackupFailsTheRestore checks that a restore does not succeed if the disk has not kept what was staged.
func TestDamagedStagedBackupFailsTheRestore(t *testing.T) {
	data := stagedIn(t)
	archivetest.Write(t, filepath.Join(data, stageName, "perch.db"), []byte("rotten"))
	if err := at(data, slog.Default()).swapIn(slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "perch.db has changed; restore the backup again") {
		t.Error(err)
	}
	if got := which(t, data); got != "old" {
		t.Errorf("now it is %s", got)
	}
}

func TestStagingReplacesAnEarlierBackup(t *testing.T) {
	data := stagedIn(t)
	second := newParcel(0, entry{name: "perch.db", text: database(t, "old")}, image("old"), entry{name: settingsName, text: []byte("name: old\n")})
	must.Value(at(data, slog.Default()).Stage(t.Context(), bytes.NewReader(second.tar(t))))(t)
	finish(t, data)
	if got := which(t, data); got != "old" || !store.Exists(filepath.Join(data, previousName)) {
		t.Errorf("now it is %s", got)
	}
	data = stagedIn(t)
	if _, err := at(data, slog.Default()).Stage(t.Context(), strings.NewReader("nothing")); err == nil {
		t.Fatal("nothing was staged")
	}
	finish(t, data)
	if got := which(t, data); got != "old" {
		t.Errorf("now it is %s", got)
	}
}

func TestNoRoomToRestore(t *testing.T) {
	data := t.TempDir()
	if err := syscall.Mount("perch", data, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(data, syscall.MNT_DETACH) })
	lives(t, data)
	large := newParcel(0, entry{name: "perch.db", text: database(t, "new")}, entry{name: "firmware/assets/fonts", text: make([]byte, 12<<20)})
	text := large.tar(t)
	arrived := &counted{Reader: bytes.NewReader(text)}
	var told store.Shown
	if _, _, err := at(data, slog.Default()).Restore(t.Context(), arrived); !errors.As(err, &told) || told.Code() != "disk_full" ||
		!strings.Contains(err.Error(), "28 are needed") || arrived.n > 4096 {
		t.Errorf("after %d bytes: %v", arrived.n, err)
	}
	ballast := func() {
		var disk syscall.Statfs_t
		must.Succeed(t, syscall.Statfs(data, &disk))
		_ = os.WriteFile(filepath.Join(data, "ballast"), make([]byte, int64(disk.Bavail)*int64(disk.Bsize)-200_000), 0o600) // an error is ignored: the disk is then full
	}
	fits := newParcel(0, entry{name: "perch.db", text: database(t, "new")}, entry{name: "firmware/assets/fonts", text: make([]byte, 2<<20)})
	text = fits.tar(t)
	surprise := &counted{Reader: bytes.NewReader(text), at: 64 << 10, do: ballast}
	if _, _, err := at(data, slog.Default()).Restore(t.Context(), surprise); !errors.As(err, &told) || told.Code() != "disk_full" {
		t.Errorf("filled meanwhile: %v", err)
	}
	if got := which(t, data); got != "old" {
		t.Errorf("now it is %s", got)
	}
}

// counted is a Reader that calls do once, when more than at bytes were read.
type counted struct {
	io.Reader
	n, at int
	do    func()
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	if c.do != nil && c.n > c.at {
		c.do()
		c.do = nil
	}
	return n, err
}

// FuzzUnpack checks that unpack creates only files with safe names, and that after success the files are
// those of the manifest.
func FuzzUnpack(f *testing.F) {
	db := entry{name: "perch.db", text: []byte("database")}
	f.Add(newParcel(0, db, image("new"), entry{name: "firmware/assets/fonts", text: []byte("fonts")}).tar(f))
	f.Add(newParcel(0, db, entry{name: "firmware/../../x", text: []byte("x")}).tar(f))
	f.Add(pile(f, entry{name: manifestName, text: []byte(`{"format":1,"files":[{"name":"perch.db","size":3,"sha256":"x"}]}`)}, db))
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, text []byte) {
		placed := map[string]*bytes.Buffer{}
		m, err := unpack(bytes.NewReader(text), firmware(), func(Manifest) error { return nil }, func(f File) (io.WriteCloser, error) {
			if !filepath.IsLocal(f.Name) || strings.Contains(f.Name, "..") || placed[f.Name] != nil {
				t.Errorf("placed: %q", f.Name)
			}
			placed[f.Name] = &bytes.Buffer{}
			return discarded{placed[f.Name]}, nil
		})
		for _, f := range m.Files {
			if err != nil {
				break
			}
			if got := placed[f.Name]; got == nil || fmt.Sprintf("%x", sha256.Sum256(got.Bytes())) != f.SHA256 {
				t.Errorf("%s is not what the manifest says", f.Name)
			}
		}
		if err == nil && placed["perch.db"] == nil {
			t.Error("a backup without a database")
		}
	})
}

func FuzzManifest(f *testing.F) {
	text := must.Value(json.Marshal(newParcel(0, entry{name: "perch.db", text: []byte("database")}, image("new")).manifest))(f)
	f.Add(text)
	f.Add([]byte(`{"format":1,"files":[{"name":"perch.db","size":-1,"sha256":""},{"name":"firmware/assets/..","size":1e9}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := readManifest(tar.NewReader(bytes.NewReader(pile(t, entry{name: manifestName, text: text}))))
		if err == nil {
			err = m.check(firmware())
		}
		for _, f := range m.Files {
			if err == nil && (!filepath.IsLocal(f.Name) || f.Size < 0 || f.Size > maxDatabase || strings.Contains(f.Name, "..")) {
				t.Errorf("passes: %+v", f)
			}
		}
		_ = m.String()
	})
}
