package espimage_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"perch/must"
	"perch/ota/espimage"
	"perch/ota/espimage/espimagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build describes an application in the format that esptool's elf2image writes.
type build struct {
	chip     uint16
	version  string
	project  string
	segments []segment
	noHash   bool
	minimum  uint16 // revision of the chip
}

type segment struct {
	address uint32
	data    []byte
}

func stackChan() build {
	code := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 2000)
	return build{chip: 9, version: "1.2.4", project: "stack-chan", minimum: 1,
		segments: []segment{{0x3C000020, make([]byte, 1024)}, {0x3FC90000, code}, {0x40370000, code[:4]}}}
}

func (b build) bytes() []byte {
	out := []byte{0xE9, byte(len(b.segments)), 2, 0x4F}
	out = binary.LittleEndian.AppendUint32(out, 0x40375a1c)
	out = append(out, 0xEE, 0, 0, 0)
	out = binary.LittleEndian.AppendUint16(out, b.chip)
	out = append(out, 0)
	out = binary.LittleEndian.AppendUint16(out, b.minimum)
	out = binary.LittleEndian.AppendUint16(out, 0xFFFF)
	out = append(out, 0, 0, 0, 0, 1)
	if b.noHash {
		out[23] = 0
	}
	sum := byte(0xEF)
	for n, s := range b.segments {
		data := bytes.Clone(s.data)
		if n == 0 {
			copy(data, b.description())
		}
		out = binary.LittleEndian.AppendUint32(out, s.address)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
		out = append(out, data...)
		for _, c := range data {
			sum ^= c
		}
	}
	for len(out)%16 != 15 {
		out = append(out, 0)
	}
	out = append(out, sum)
	if !b.noHash {
		digest := sha256.Sum256(out)
		out = append(out, digest[:]...)
	}
	return out
}

func (b build) description() []byte {
	d := make([]byte, 256)
	binary.LittleEndian.PutUint32(d, 0xABCD5432)
	binary.LittleEndian.PutUint32(d[4:], 3)
	copy(d[16:48], b.version)
	copy(d[48:80], b.project)
	copy(d[80:96], "10:11:12")
	copy(d[96:112], "Jun  9 2026")
	copy(d[112:144], "v5.5.1")
	for i := range 32 {
		d[144+i] = byte(i)
	}
	return d
}

func read(file []byte) (espimage.Image, error) {
	return espimage.Read(bytes.NewReader(file), int64(len(file)))
}

func TestAnApplication(t *testing.T) {
	file := stackChan().bytes()
	i := must.Value(read(file))(t)
	if i.Kind != espimage.Application || i.Chip.String() != "esp32s3" || i.MinRevision != 1 || !i.Hashed || i.Signed || i.Trailing != 0 ||
		i.Size != int64(len(file)) || i.Length != i.Size || i.SHA256 != sha256.Sum256(file) {
		t.Errorf("%+v", i)
	}
	app := espimage.App{Version: "1.2.4", Project: "stack-chan", Date: "Jun  9 2026", Time: "10:11:12", IDF: "v5.5.1"}
	for n := range 32 {
		app.ELF[n] = byte(n)
	}
	if i.App != app {
		t.Errorf("described as %+v", i.App)
	}
	want := []espimage.Segment{{0x3C000020, 1024, 32}, {0x3FC90000, 16000, 1064}, {0x40370000, 4, 17072}}
	if fmt.Sprint(i.Segments) != fmt.Sprint(want) {
		t.Errorf("segments %+v", i.Segments)
	}
}

func TestTrailingBytesAndSignature(t *testing.T) {
	plain := stackChan().bytes()
	signature := append(bytes.Clone(plain), make([]byte, 4096-len(plain)%4096)...)
	signature = append(signature, append([]byte{0xE7}, make([]byte, 4095)...)...)
	other := bytes.Clone(signature)
	other[len(other)-4096] = 0xE8
	unhashed := stackChan()
	unhashed.noHash = true
	for _, c := range []struct {
		name     string
		file     []byte
		signed   bool
		hashed   bool
		trailing int
	}{
		{"nothing", plain, false, true, 0},
		{"no hash", unhashed.bytes(), false, false, 0},
		{"a signature", signature, true, true, 0},
		{"no signature", other, false, true, len(other) - len(plain)},
		{"a byte", append(bytes.Clone(plain), 1), false, true, 1},
	} {
		i, err := read(c.file)
		if err != nil || i.Signed != c.signed || i.Hashed != c.hashed || i.Trailing != int64(c.trailing) || i.SHA256 != sha256.Sum256(c.file) {
			t.Errorf("%s: %+v (%v)", c.name, i, err)
		}
	}
}

// refused checks that err is a Refusal with a proper sentence, and returns its word.
func refused(t *testing.T, name string, err error) string {
	t.Helper()
	var r *espimage.Refusal
	if !errors.As(err, &r) {
		t.Errorf("%s: %v is no refusal", name, err)
		return ""
	}
	if len(r.Sentence) < 15 || strings.Contains(r.Sentence, "%!") || strings.ContainsAny(r.Sentence, "\n\x1b") {
		t.Errorf("%s: says %q", name, r.Sentence)
	}
	return r.Word
}

func TestWhatABootLoaderRefuses(t *testing.T) {
	change := func(do func(file []byte)) []byte {
		file := stackChan().bytes()
		do(file)
		return file
	}
	with := func(do func(*build)) []byte {
		b := stackChan()
		do(&b)
		return b.bytes()
	}
	good := stackChan().bytes()
	for _, c := range []struct {
		name string
		file []byte
		word string
	}{
		{"half of it", good[:len(good)/2], espimage.Truncated},
		{"without its hash", good[:len(good)-32], espimage.Truncated},
		{"without the last byte", good[:len(good)-1], espimage.Truncated},
		{"the description alone", good[:288], espimage.Truncated},
		{"no segments", change(func(f []byte) { f[1] = 0 }), espimage.BadHeader},
		{"17 segments", change(func(f []byte) { f[1] = 17 }), espimage.BadHeader},
		{"a segment more", change(func(f []byte) { f[1]++ }), espimage.BadHash},
		{"a segment of 3 bytes", change(func(f []byte) { binary.LittleEndian.PutUint32(f[1060:], 3) }), espimage.BadSegment},
		{"a segment of 16 MB", change(func(f []byte) { binary.LittleEndian.PutUint32(f[1060:], 16<<20) }), espimage.BadSegment},
		{"a segment of 4 GB", change(func(f []byte) { binary.LittleEndian.PutUint32(f[1060:], 0xFFFFFFFC) }), espimage.BadSegment},
		{"a segment past the end", change(func(f []byte) { binary.LittleEndian.PutUint32(f[1060:], 15<<20) }), espimage.Truncated},
		{"a first segment too short", with(func(b *build) { b.segments[0].data = b.segments[0].data[:252] }), espimage.BadSegment},
		{"mapped askew", with(func(b *build) { b.segments[0].address = 0x3C000000 }), espimage.BadSegment},
		{"a byte of its data", change(func(f []byte) { f[5000] ^= 1 }), espimage.BadChecksum},
		{"two bytes of its data", change(func(f []byte) { f[5000] ^= 1; f[6000] ^= 1 }), espimage.BadHash},
		{"a byte of its hash", change(func(f []byte) { f[len(f)-1] ^= 1 }), espimage.BadHash},
		{"its version changed", change(func(f []byte) { f[48] ^= 3; f[50] ^= 3 }), espimage.BadHash},
		{"too large", append(bytes.Clone(good), make([]byte, 16<<20)...), espimage.TooLarge},
	} {
		i, err := read(c.file)
		if word := refused(t, c.name, err); word != c.word || i.Kind != espimage.Application {
			t.Errorf("%s: %s %q (%v), want %q", c.name, i.Kind, word, err, c.word)
		}
	}
}

func TestOtherKindsAreRecognizedAndRefused(t *testing.T) {
	app := stackChan().bytes()
	nvs := table([]entry{{"nvs", 1, 2, 0x9000, 0x4000}}, false)[:32]
	boot := bytes.Clone(app)
	binary.LittleEndian.PutUint32(boot[32:], 80)
	merged := append(bytes.Clone(boot), bytes.Repeat([]byte{0xFF}, 0x8000-len(boot))...)
	merged = append(append(merged, nvs...), bytes.Repeat([]byte{0xFF}, 4096)...)
	esp32 := append(bytes.Repeat([]byte{0xFF}, 0x1000), merged[:0x7000]...)
	esp32 = append(append(esp32, nvs...), app...)
	assets := espimagetest.Sealed(1, make([]byte, 44+100))
	for _, c := range []struct {
		name string
		file []byte
		kind espimage.Kind
	}{
		{"boot loader", boot, espimage.BootLoader},
		{"merged for an ESP32-S3", merged, espimage.Merged},
		{"merged for an ESP32", esp32, espimage.Merged},
		{"partition table", append(nvs, bytes.Repeat([]byte{0xFF}, 3000)...), espimage.PartitionTable},
		{"assets", assets, espimage.AssetFile},
		{"assets cut short", assets[:150], espimage.Unknown},
		{"ELF", append([]byte("\x7fELF"), make([]byte, 500)...), espimage.ELF},
		{"zip", []byte("PK\x03\x04........"), espimage.Archive},
		{"gzip", []byte("\x1f\x8b......."), espimage.Archive},
		{"text", []byte("<!DOCTYPE html><html>"), espimage.Unknown},
		{"nothing", nil, espimage.Unknown},
		{"one byte", []byte{0xE9}, espimage.BootLoader},
		{"erased flash", bytes.Repeat([]byte{0xFF}, 1<<16), espimage.Unknown},
		{"zeros", make([]byte, 1<<16), espimage.Unknown},
	} {
		i, err := read(c.file)
		if word := refused(t, c.name, err); i.Kind != c.kind || word != espimage.NotAnApplication {
			t.Errorf("%s: %s, %q", c.name, i.Kind, word)
		}
	}
}

func TestFits(t *testing.T) {
	i := must.Value(read(stackChan().bytes()))(t)
	s3, _ := espimage.ParseChip("esp32s3")
	esp32, known := espimage.ParseChip("esp32")
	if _, knows := espimage.ParseChip("esp8266"); !known || knows || esp32 != 0 {
		t.Error("the names of chips are wrong")
	}
	for _, c := range []struct {
		name   string
		target espimage.Target
		word   string
	}{
		{"nothing known", espimage.Target{Chip: espimage.NoChip, Revision: -1}, ""},
		{"its own", espimage.Target{Chip: s3, Revision: 2, Slot: i.Length}, ""},
		{"revision not known", espimage.Target{Chip: s3, Revision: -1}, ""},
		{"another chip", espimage.Target{Chip: esp32, Revision: -1}, espimage.WrongChip},
		{"a chip nobody knows", espimage.Target{Chip: 77, Revision: -1}, espimage.WrongChip},
		{"an old chip", espimage.Target{Chip: s3, Revision: 0}, espimage.WrongChip},
		{"a small partition", espimage.Target{Chip: s3, Revision: 2, Slot: i.Length - 1}, espimage.TooLarge},
	} {
		err := i.Fits(c.target)
		if c.word == "" && err != nil || c.word != "" && refused(t, c.name, err) != c.word {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestTextsHaveNoControlCharacters(t *testing.T) {
	b := stackChan()
	b.version, b.project = "1.0\x1b[2J\n\xff", strings.Repeat("x", 40)
	i, err := read(b.bytes())
	if err != nil || i.App.Version != "1.0[2J" || i.App.Project != strings.Repeat("x", 32) {
		t.Errorf("%+v (%v)", i.App, err)
	}
}

// broken is a reader that fails after its first good bytes.
type broken struct {
	io.ReaderAt
	good int64
}

var errBroken = errors.New("input/output error")

func (b broken) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.good {
		return 0, errBroken
	}
	return b.ReaderAt.ReadAt(p, off)
}

func TestReadErrorIsNotARefusal(t *testing.T) {
	b := stackChan()
	b.segments[1].data = make([]byte, 1<<20)
	file := b.bytes()
	for _, good := range []int64{0, 288, 100 << 10, 700 << 10} {
		_, err := espimage.Read(broken{bytes.NewReader(file), good}, int64(len(file)))
		var r *espimage.Refusal
		if !errors.Is(err, errBroken) || errors.As(err, &r) {
			t.Errorf("after %d bytes: %v", good, err)
		}
	}
}

// FuzzRead reads arbitrary files. An accepted file must satisfy the format.
func FuzzRead(f *testing.F) {
	b := stackChan()
	b.segments = []segment{{0x3C000020, make([]byte, 256)}, {0x3FC90000, []byte("code")}}
	good := b.bytes()
	f.Add(good)
	f.Add(good[:300])
	f.Add(append(bytes.Repeat([]byte{0xFF}, 0x1000), good...))
	f.Add([]byte{0xAA, 0x50, 1, 2, 0, 0x90, 0, 0, 0, 0x40, 0, 0, 'n', 'v', 's', 31: 0})
	f.Fuzz(func(t *testing.T, file []byte) {
		i, err := read(file)
		if err != nil {
			refused(t, "fuzz", err)
			return
		}
		if i.Kind != espimage.Application || i.Length > i.Size || i.Length%16 != 0 || i.Length+i.Trailing > i.Size || len(i.Segments) == 0 {
			t.Errorf("%+v", i)
		}
		if i.Hashed && sha256.Sum256(file[:i.Length-32]) != [32]byte(file[i.Length-32:i.Length]) {
			t.Error("its hash is wrong")
		}
	})
}
