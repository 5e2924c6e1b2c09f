package ota_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/device"
	"perch/event"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/ota"
	"perch/store/storetest"
)

// catalogue is a Firmware with its folder, tables and bus.
type catalogue struct {
	*ota.Firmware
	dir      string
	images   *storetest.Table[ota.Record]
	units    *storetest.Table[ota.Unit]
	bus      *event.Bus
	notified []string
}

func newCatalogue(t testing.TB, change ...func(*ota.FirmwareOptions)) *catalogue {
	s := &catalogue{dir: filepath.Join(t.TempDir(), "firmware"), images: &storetest.Table[ota.Record]{}, units: &storetest.Table[ota.Unit]{},
		bus: event.NewBus()}
	t.Cleanup(s.bus.Close)
	s.open(t, change...)
	return s
}

// open opens the catalogue again, as the next start of the appliance does. It encodes the records as JSON and
// decodes them.
func (s *catalogue) open(t testing.TB, change ...func(*ota.FirmwareOptions)) {
	t.Helper()
	again(t, &s.images.Kept)
	again(t, &s.units.Kept)
	o := ota.FirmwareOptions{Dir: s.dir, Images: s.images, Units: s.units, Key: []byte("key"), Bus: s.bus, Zone: time.UTC,
		Stopped: func(version string, failed, first int) {
			s.notified = append(s.notified, fmt.Sprintf("%s: %d of %d", version, failed, first))
		}, Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&o)
	}
	var err error
	if s.Firmware, err = ota.OpenFirmware(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Firmware.Close)
}

// again replaces a value by the result of encoding and decoding it as JSON.
func again[T any](t testing.TB, v *T) {
	t.Helper()
	text, err := json.Marshal(v)
	var decoded T
	if err = errors.Join(err, json.Unmarshal(text, &decoded)); err != nil {
		t.Fatal(err)
	}
	*v = decoded
}

// files returns the names of the files in the folder.
func (s *catalogue) files(t testing.TB) (names []string) {
	t.Helper()
	list := must.Value(os.ReadDir(s.dir))(t)
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

const board = "m5stack-stack-chan"

// add adds an image, which must succeed.
func (s *catalogue) add(t testing.TB, file []byte, boards ...string) ota.Shown {
	t.Helper()
	return must.Value(s.Add(t.Context(), bytes.NewReader(file), ota.Upload{Boards: boards}, time.Unix(1_785_000_000, 0)))(t)
}

// rollOut adds an image, and a rollout to all robots with the board.
func (s *catalogue) rollOut(t testing.TB, file []byte) ota.Shown {
	t.Helper()
	return must.Value(s.Plan(s.add(t, file, board).SHA256, ota.Rollout{Percent: 100, Auto: true}))(t)
}

// coded is an error with a code and a status.
type coded interface {
	error
	Code() string
	Status() int
}

// codeOf returns the code of an error, or "".
func codeOf(err error) string {
	if c, is := errors.AsType[coded](err); is && c.Status() >= 400 && len(err.Error()) > 15 {
		return c.Code()
	}
	return ""
}

func TestAddImage(t *testing.T) {
	s := newCatalogue(t)
	file := simrobot.Image("1.3.0", 20_000)
	i := s.add(t, file, board)
	sha := fmt.Sprintf("%x", sha256.Sum256(file))
	if i.SHA256 != sha || i.Size != int64(len(file)) || i.Version != "1.3.0" || i.Project != "stack-chan" || i.Chip != "esp32s3" ||
		!slices.Equal(i.Boards, []string{board}) || i.Signed || i.Rollout.Percent != 0 || i.Rollout.Auto {
		t.Errorf("%+v", i)
	}
	if files := s.files(t); !slices.Equal(files, []string{sha + ".bin"}) {
		t.Errorf("the folder has %v", files)
	}
	if kept, err := os.ReadFile(filepath.Join(s.dir, sha+".bin")); err != nil || !bytes.Equal(kept, file) {
		t.Errorf("the file is another (%v)", err)
	}
	if again := s.add(t, file, "other-board", board); !slices.Equal(again.Boards, []string{board, "other-board"}) {
		t.Errorf("declared for more boards, it is for %v", again.Boards)
	}
	s.add(t, simrobot.Image("1.10.0", 0), board)
	s.open(t)
	if list := s.List(); len(list) != 2 || list[0].Version != "1.10.0" || list[1].SHA256 != sha || len(list[1].Boards) != 2 {
		t.Errorf("after a restart there are %+v", list)
	}
	if err := s.Remove(sha); err != nil || len(s.List()) != 1 || len(s.files(t)) != 1 {
		t.Errorf("removed, there are %v (%v)", s.files(t), err)
	}
	if err := s.Remove(sha); codeOf(err) != "unknown_image" {
		t.Error(err)
	}
}

// TestWhatIsNotPublished checks that invalid images are refused with a reason, and leave no file.
func TestWhatIsNotPublished(t *testing.T) {
	good := simrobot.Image("1.3.0", 20_000)
	change := func(do func([]byte)) []byte {
		file := bytes.Clone(good)
		do(file)
		return file
	}
	resealed := func(do func([]byte)) []byte {
		file := bytes.Clone(good[:32+20_000])
		do(file)
		return simrobot.Seal(file)
	}
	for _, c := range []struct {
		name string
		file io.Reader
		up   ota.Upload
		want string
	}{
		{"truncated", bytes.NewReader(good[:10_000]), ota.Upload{}, "truncated"},
		{"broken off", breaks{bytes.NewReader(good[:10_000])}, ota.Upload{}, "truncated"},
		{"damaged", bytes.NewReader(change(func(f []byte) { f[9000] ^= 1 })), ota.Upload{}, "bad_checksum"},
		{"merged", bytes.NewReader(append(change(func(f []byte) { f[32] = 0 })[:4096], append([]byte{0xAA, 0x50, 0, 0x10, 0, 0, 2, 0, 0, 0, 0x10, 0},
			make([]byte, 1000)...)...)), ota.Upload{}, "not_an_application"},
		{"a web page", strings.NewReader("<html>"), ota.Upload{}, "not_an_application"},
		{"nothing", strings.NewReader(""), ota.Upload{}, "not_an_application"},
		{"without end", io.LimitReader(endless{}, 1<<30), ota.Upload{}, "too_large"},
		{"another hash", bytes.NewReader(good), ota.Upload{SHA256: strings.Repeat("0", 64)}, "wrong_sha256"},
		{"no board", bytes.NewReader(good), ota.Upload{Boards: []string{}}, "bad_board"},
		{"an empty board", bytes.NewReader(good), ota.Upload{Boards: []string{""}}, "bad_board"},
		{"a long board", bytes.NewReader(good), ota.Upload{Boards: []string{strings.Repeat("b", 101)}}, "bad_board"},
		{"a version that aborts robots", bytes.NewReader(simrobot.Image("v1.3.0", 0)), ota.Upload{}, "bad_version"},
		{"no version", bytes.NewReader(simrobot.Image("", 0)), ota.Upload{}, "bad_version"},
		{"a chip that is none", bytes.NewReader(resealed(func(f []byte) { f[12] = 99 })), ota.Upload{}, "wrong_chip"},
	} {
		s := newCatalogue(t)
		if c.up.Boards == nil {
			c.up.Boards = []string{board}
		}
		if _, err := s.Add(t.Context(), c.file, c.up, time.Now()); codeOf(err) != c.want {
			t.Errorf("%s: %q (%v)", c.name, codeOf(err), err)
		}
		if left := s.files(t); len(left) != 0 || len(s.List()) != 0 {
			t.Errorf("%s: it leaves %v", c.name, left)
		}
	}
	s := newCatalogue(t)
	if _, err := s.Add(t.Context(), bytes.NewReader(good), ota.Upload{Boards: []string{board}, SHA256: fmt.Sprintf("%X", sha256.Sum256(good))},
		time.Now()); err != nil {
		t.Errorf("with its own hash: %v", err)
	}
}

// TestTooManyBoards checks that the error for an image with too many boards says how many are allowed.
func TestTooManyBoards(t *testing.T) {
	image := bytes.NewReader(simrobot.Image("1.3.0", 0))
	_, err := newCatalogue(t).Add(t.Context(), image, ota.Upload{Boards: slices.Repeat([]string{board}, 33)}, time.Now())
	if codeOf(err) != "bad_board" || !strings.Contains(err.Error(), "at most 32 boards, not for 33") {
		t.Error(err)
	}
}

func TestOneUploadAtATime(t *testing.T) {
	s := newCatalogue(t)
	begun, body := io.Pipe()
	first := make(chan error)
	go func() {
		_, err := s.Add(context.Background(), begun, ota.Upload{Boards: []string{board}}, time.Now())
		first <- err
	}()
	file := simrobot.Image("1.3.0", 5000)
	must.Value(body.Write(file[:100]))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Add(ctx, bytes.NewReader(simrobot.Image("1.4.0", 0)), ota.Upload{Boards: []string{board}}, time.Now()); !errors.Is(err,
		context.Canceled) {
		t.Errorf("a second upload: %v", err)
	}
	must.Value(body.Write(file[100:]))(t)
	if body.Close(); <-first != nil || len(s.List()) != 1 {
		t.Errorf("there are %d images", len(s.List()))
	}
}

func TestSignatures(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	must.Succeed(t, err)
	_, stranger, _ := ed25519.GenerateKey(nil)
	file := simrobot.Image("1.3.0", 0)
	digest := sha256.Sum256(file)
	other := sha256.Sum256(simrobot.Image("1.2.0", 0))
	sign := func(k ed25519.PrivateKey, d [32]byte) string {
		return base64.StdEncoding.EncodeToString(ed25519.Sign(k, d[:]))
	}
	for _, c := range []struct{ name, signature, want string }{
		{"none", "", "no_signature"},
		{"a stranger's", sign(stranger, digest), "bad_signature"},
		{"of another image", sign(private, other), "bad_signature"},
		{"no base64", "!", "bad_signature"},
		{"too short", "AAAA", "bad_signature"},
		{"its own", sign(private, digest), ""},
	} {
		s := newCatalogue(t, func(o *ota.FirmwareOptions) { o.Signer = public })
		i, err := s.Add(t.Context(), bytes.NewReader(file), ota.Upload{Boards: []string{board}, Signature: c.signature}, time.Now())
		if codeOf(err) != c.want || i.Signed != (c.want == "") || len(s.files(t)) != len(s.List()) {
			t.Errorf("%s: %q (%v), signed %v", c.name, codeOf(err), err, i.Signed)
		}
	}
}

// TestWhateverMomentThePowerGoes checks that the catalogue is consistent at the start after a power cut, and
// that it contains nothing that was not finished.
func TestWhateverMomentThePowerGoes(t *testing.T) {
	s := newCatalogue(t)
	whole := s.add(t, simrobot.Image("1.3.0", 5000), board)
	lost := s.add(t, simrobot.Image("1.4.0", 5000), board)
	short := s.add(t, simrobot.Image("1.5.0", 5000), board)
	name := func(n string) string { return filepath.Join(s.dir, n) }
	write := func(n string, size int) {
		must.Succeed(t, os.WriteFile(name(n), make([]byte, size), 0o600))
	}
	write(".upload-123", 100)                   // in the middle of an upload
	write(strings.Repeat("ab", 32)+".bin", 100) // before its record
	write("notes.txt", 10)                      // a file of the owner
	write(short.SHA256+".bin", 10)              // an image whose end the disk has lost
	must.Succeed(t, os.Remove(name(lost.SHA256+".bin")))
	s.open(t)
	if list := s.List(); len(list) != 1 || list[0].SHA256 != whole.SHA256 {
		t.Errorf("there are %+v", list)
	}
	if len(s.images.Kept) != 1 {
		t.Errorf("the store has %d", len(s.images.Kept))
	}
	s.open(t) // now the records of the damaged images are gone
	if files := s.files(t); !slices.Equal(slices.Sorted(slices.Values(files)),
		slices.Sorted(slices.Values([]string{whole.SHA256 + ".bin", "notes.txt", "orphaned"}))) {
		t.Errorf("the folder has %v", files)
	}
	if aside, err := os.ReadDir(name("orphaned")); err != nil || len(aside) != 2 {
		t.Errorf("put aside are %v, %v", aside, err)
	}
}

// TestImagesAreNeverDeletedAtAStart checks that a start moves files without records to another folder, from
// which they can be published again, and changes no file if the records cannot be read.
func TestImagesAreNeverDeletedAtAStart(t *testing.T) {
	s := newCatalogue(t)
	image := s.add(t, simrobot.Image("1.3.0", 5000), board)
	s.images.Kept = nil
	if _, err := ota.OpenFirmware(ota.FirmwareOptions{Dir: s.dir, Images: unreadable{s.images}, Units: s.units,
		Log: slog.New(slog.DiscardHandler)}); !errors.Is(err, errDamaged) {
		t.Errorf("a catalogue that cannot be read is opened: %v", err)
	}
	if files := s.files(t); !slices.Equal(files, []string{image.SHA256 + ".bin"}) {
		t.Errorf("there are %v", files)
	}
	var log bytes.Buffer
	s.open(t, func(o *ota.FirmwareOptions) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	aside := filepath.Join(s.dir, "orphaned", image.SHA256+".bin")
	if text, err := os.ReadFile(aside); err != nil || fmt.Sprintf("%x", sha256.Sum256(text)) != image.SHA256 ||
		!strings.Contains(log.String(), aside) {
		t.Errorf("put aside: %v; the log says %s", err, &log)
	}
	file := must.Value(os.ReadFile(aside))(t)
	if s.add(t, file, board).SHA256 != image.SHA256 {
		t.Error("it cannot be published again")
	}
}

// unreadable is a table that cannot be read completely.
type unreadable struct{ *storetest.Table[ota.Record] }

var errDamaged = errors.New("a page is damaged")

func (unreadable) Err() error { return errDamaged }

func TestFailedWriteChangesNothing(t *testing.T) {
	s := newCatalogue(t)
	i := s.add(t, simrobot.Image("1.3.0", 0), board)
	s.images.Breaks(errors.New("no space left"))
	if _, err := s.Add(t.Context(), bytes.NewReader(simrobot.Image("1.4.0", 0)), ota.Upload{Boards: []string{board}}, time.Now()); err == nil {
		t.Error("an image is taken")
	}
	if _, err := s.Plan(i.SHA256, ota.Rollout{Percent: 100, Auto: true}); err == nil {
		t.Error("a rollout is set")
	}
	if err := s.Remove(i.SHA256); err == nil {
		t.Error("an image is removed")
	}
	list := s.List()
	if len(list) != 1 || list[0].Rollout.Auto {
		t.Errorf("there are %+v", list)
	}
	s.images.Breaks(nil)
	s.open(t)
	if len(s.List()) != 1 || len(s.files(t)) != 1 {
		t.Errorf("after a restart there are %v", s.files(t))
	}
}

func TestParseRollout(t *testing.T) {
	r, err := ota.ParseRollout([]byte(`{"boards":["b"],"robots":["A0-B1-C2-D3-E4-F5"],"percent":30,"hours":"02:00-05:00","auto":true,"paused":true}`),
		device.ParseID)
	if err != nil || r.Percent != 30 || !r.Paused || r.Hours.String() != "02:00-05:00" || !r.Auto || r.Force ||
		!slices.Equal(r.Robots, []device.ID{"a0b1c2d3e4f5"}) {
		t.Errorf("%+v (%v)", r, err)
	}
	if r, err := ota.ParseRollout([]byte(`{}`), device.ParseID); err != nil || r.Percent != 100 || r.Auto {
		t.Errorf("%+v (%v)", r, err)
	}
	for _, body := range []string{"", "[]", "null]", `{"percent":101}`, `{"percent":-1}`, `{"percent":"30"}`, `{"percent":0.5}`, `{"robots":["x"]}`,
		`{"hours":"night"}`, `{"boards":[` + strings.Repeat(`"b",`, 40) + `"b"]}`, `{"auto":1}`, `{"paused":"yes"}`} {
		if r, err := ota.ParseRollout([]byte(body), device.ParseID); codeOf(err) != "bad_rollout" {
			t.Errorf("%s is %+v (%v)", body, r, err)
		}
	}
	s := newCatalogue(t)
	i := s.add(t, simrobot.Image("1.3.0", 0), board)
	if _, err := s.Plan(i.SHA256, r); err == nil {
		t.Error("for a board that it was not declared for")
	}
	r.Boards[0] = board
	must.Value(s.Plan(i.SHA256, r))(t)
	s.open(t)
	if kept := s.List()[0].Rollout; !reflect.DeepEqual(kept, r) {
		t.Errorf("after a restart it is %+v", kept)
	}
	if _, err := s.Plan(i.SHA256, ota.Rollout{Boards: []string{"other"}}); codeOf(err) != "bad_rollout" {
		t.Errorf("for a board it was not declared for: %v", err)
	}
	if _, err := s.Plan(strings.Repeat("0", 64), ota.Rollout{}); codeOf(err) != "unknown_image" {
		t.Error(err)
	}
}

func FuzzRollout(f *testing.F) {
	f.Add([]byte(`{"boards":["b"],"robots":["a0b1c2d3e4f5"],"percent":30,"hours":"02:00-05:00","auto":true,"force":true}`))
	f.Add([]byte(`{"hours":"23:59-00:00"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ota.ParseRollout(body, device.ParseID)
		if err != nil {
			if codeOf(err) != "bad_rollout" {
				t.Error(err)
			}
			return
		}
		again, err := device.ParseHours(r.Hours.String())
		if r.Percent < 0 || r.Percent > 100 || err != nil || again != r.Hours {
			t.Errorf("%s is %+v", body, r)
		}
	})
}

// heldImages calls a function before it deletes a record.
type heldImages struct {
	*storetest.Table[ota.Record]
	deletes func()
}

func (t heldImages) Delete(key string) error {
	t.deletes()
	return t.Table.Delete(key)
}

// TestRemovingAnImageIsDurable checks that the trials of the image are removed before its record, whose removal
// makes both durable. If removing the record fails, the trials are restored.
func TestRemovingAnImageIsDurable(t *testing.T) {
	var before map[string]ota.Unit
	images, units := &storetest.Table[ota.Record]{}, &storetest.Table[ota.Unit]{}
	l := newAppliance(t, func(o *ota.FirmwareOptions) {
		o.Images, o.Units = heldImages{images, func() { before = maps.Clone(units.Kept) }}, units
	})
	l.images, l.units = images, units
	image := l.add(t, simrobot.Image("1.3.0", 0), board)
	l.runs(t, mac, "1.2.4")
	must.Value(l.Install("a0b1c2d3e4f5", image.SHA256, time.Now()))(t)
	tried := func(units map[string]ota.Unit) bool {
		u := units["a0b1c2d3e4f5"]
		return len(u.Trials) > 0 || u.Wanted != ""
	}
	if !tried(l.units.Kept) {
		t.Fatalf("kept is %+v", l.units.Kept)
	}
	full := errors.New("disk full")
	l.images.RefuseDurable(full)
	if err := l.Remove(image.SHA256); !errors.Is(err, full) || !tried(l.units.Kept) || len(l.List()) != 1 || len(l.List()[0].Robots) != 1 {
		t.Errorf("on a full disk: %v, kept is %+v", err, l.units.Kept)
	}
	l.images.RefuseDurable(nil)
	if err := l.Remove(image.SHA256); err != nil || tried(before) {
		t.Errorf("%v; when the record was deleted, of its robots was kept %+v", err, before)
	}
}
