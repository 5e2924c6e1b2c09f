package nvs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"perch/firmware-tools/nvs"
	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pattern returns a blob of 9000 bytes in hexadecimal. The blob takes three pages.
func pattern() string {
	b := make([]byte, 9000)
	for i := range b {
		b[i] = byte(i*7 + i/256)
	}
	return hex.EncodeToString(b)
}

func blob(b []byte) nvs.Value { return nvs.Value{Type: nvs.Blob, Data: b} }

// set stores values. Each text has the form "namespace/key=type:value".
func set(t testing.TB, p *nvs.Partition, texts ...string) {
	t.Helper()
	for _, text := range texts {
		name, rest, _ := strings.Cut(text, "=")
		namespace, key, _ := strings.Cut(name, "/")
		kind, value, _ := strings.Cut(rest, ":")
		typ, known := nvs.ParseType(kind)
		v, err := nvs.ParseValue(typ, value)
		if !known || err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		must.Succeed(t, p.Set(namespace, key, v))
	}
}

// show returns the items of a partition, one per line, in the form that set takes.
func show(p *nvs.Partition) string {
	var b strings.Builder
	for _, i := range p.Items() {
		fmt.Fprintf(&b, "%s/%s=%v:%v\n", i.Namespace, i.Key, i.Value.Type, i.Value)
	}
	return b.String()
}

func whole(t testing.TB) *nvs.Partition {
	p := &nvs.Partition{}
	set(t, p, "wifi/ssid=string:home", "wifi/password=string:correct horse", "wifi/ota_url=string:http://perch.local:8003/xiaozhi/ota/",
		"wifi/max_tx_power=i8:-80", "wifi/remember_bssid=u8:1", "board/uuid=string:3f1c8e5a-9b1d-4c7e-8a2f-0d6b5e4c3a21",
		"websocket/version=i32:2", "websocket/token=string:",
		"all/u16=u16:65535", "all/i16=i16:-32768", "all/u32=u32:4294967295", "all/i32=i32:-2147483648",
		"all/u64=u64:18446744073709551615", "all/i64=i64:-9223372036854775808",
		"all/none=blob:", "all/one=blob:07", "all/pages=blob:"+pattern(), "wifi/ssid1=string:"+strings.Repeat("x", 1500))
	return p
}

func encode(t testing.TB, p *nvs.Partition, size int) []byte {
	t.Helper()
	image := must.Value(p.Encode(size))(t)
	return image
}

func decode(t testing.TB, image []byte) *nvs.Partition {
	t.Helper()
	p := must.Value(nvs.Decode(image))(t)
	return p
}

// TestByteForByte checks that Encode writes the same image as Espressif's nvs_partition_gen (commit
// 67113ed0), by the image's SHA-256.
func TestByteForByte(t *testing.T) {
	image := encode(t, whole(t), 0x6000)
	if got := fmt.Sprintf("%x", sha256.Sum256(image)); got != "31a647764a5075da6ee94a4560d00348d64ff6dd79d1ce4e20003569a79778ec" {
		t.Errorf("the image is another: %s", got)
	}
	p := decode(t, image)
	if show(p) != show(whole(t)) || len(p.Damaged()) > 0 {
		t.Errorf("it is read as\n%s%v", show(p), p.Damaged())
	}
}

// TestOtherKeysStay checks that Set and Delete change no other item, such as the robot's Wi-Fi and its
// Client-Id (board/uuid).
func TestOtherKeysStay(t *testing.T) {
	p := decode(t, encode(t, whole(t), 0x6000))
	before := show(p)
	set(t, p, "wifi/ota_url=string:http://other.local:80/", "assets/download_url=string:x")
	after := strings.Replace(before, "http://perch.local:8003/xiaozhi/ota/", "http://other.local:80/", 1) + "assets/download_url=string:x\n"
	p = decode(t, encode(t, p, 0x6000))
	if show(p) != after {
		t.Errorf("it has become\n%s", show(p))
	}
	if !p.Delete("assets", "download_url") || p.Delete("assets", "download_url") || p.Delete("no", "one") {
		t.Error("Delete reports what it did not do")
	}
	set(t, p, "wifi/ota_url=string:http://perch.local:8003/xiaozhi/ota/")
	if p = decode(t, encode(t, p, 0x6000)); show(p) != before {
		t.Errorf("it has become\n%s", show(p))
	}
	if v, there := p.Get("board", "uuid"); !there || v.Type != nvs.String || v.String() != "3f1c8e5a-9b1d-4c7e-8a2f-0d6b5e4c3a21" {
		t.Errorf("uuid %v", v)
	}
	if _, there := p.Get("board", "ssid"); there {
		t.Error("a key is found in a namespace without it")
	}
}

func TestBlobsThatFillAPage(t *testing.T) {
	for _, length := range []int{122*32 + 1, 123 * 32, 123*32 + 1, 124*32 - 1, 124 * 32, 124*32 + 1, 249 * 32, 249*32 + 1, 250 * 32} {
		p := &nvs.Partition{}
		must.Succeed(t, p.Set("n", "blob", blob(bytes.Repeat([]byte{7}, length))))
		set(t, p, "n/behind=u8:1")
		image := encode(t, p, 0x6000)
		sameAgain(t, p, image)
	}
}

func TestValueThatNeedsAWholePage(t *testing.T) {
	p := &nvs.Partition{}
	set(t, p, "n/a=u8:1")
	must.Succeed(t, p.Set("n", "long", nvs.Text(strings.Repeat("y", nvs.MaxString))))
	sameAgain(t, p, encode(t, p, nvs.MinSize)) // the longest string takes the whole second page
	must.Succeed(t, p.Set("n", "longer", nvs.Text(strings.Repeat("y", nvs.MaxString))))
	if _, err := p.Encode(nvs.MinSize); !errors.Is(err, nvs.ErrFull) {
		t.Errorf("three pages of three are used: %v", err)
	}
	large := &nvs.Partition{}
	for n := range 100 {
		set(t, large, fmt.Sprintf("n/k%d=u8:1", n))
	}
	// The larger blob needs one more than the maximum of 127 chunks. The smaller one fills the rest of
	// the first page and 126 whole pages.
	for n, fits := range []bool{true, false} {
		must.Succeed(t, large.Set("n", "large", blob(make([]byte, 126*4000+(125-101)*32+n))))
		if _, err := large.Encode(nvs.MaxSize); fits != (err == nil) || !fits && !errors.Is(err, nvs.ErrFull) {
			t.Errorf("%d bytes more: %v", n, err)
		}
	}
	for _, size := range []int{0, 4096, 8192, nvs.MinSize + 1, nvs.MaxSize + 4096} {
		if _, err := p.Encode(size); !errors.Is(err, nvs.ErrFormat) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	p := &nvs.Partition{}
	for name, c := range map[string]struct {
		namespace, key string
		value          nvs.Value
	}{
		"no namespace":     {"", "k", nvs.Text("")},
		"no key":           {"n", "", nvs.Text("")},
		"a long key":       {"n", "k234567890123456", nvs.Text("")},
		"a long namespace": {"n234567890123456", "k", nvs.Text("")},
		"a zero in a key":  {"n", "k\x00", nvs.Text("")},
		"a long string":    {"n", "k", nvs.Text(strings.Repeat("x", 4000))},
		"a zero in a text": {"n", "k", nvs.Text("a\x00b")},
		"a long blob":      {"n", "k", blob(make([]byte, nvs.MaxBlob+1))},
		"no type":          {"n", "k", nvs.Value{}},
		"a short number":   {"n", "k", nvs.Value{Type: nvs.I32, Data: []byte{1}}},
	} {
		if err := p.Set(c.namespace, c.key, c.value); !errors.Is(err, nvs.ErrItem) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range 254 {
		set(t, p, fmt.Sprintf("n%d/k=u8:1", n))
	}
	if err := p.Set("one", "more", nvs.Text("")); !errors.Is(err, nvs.ErrItem) || len(p.Items()) != 254 {
		t.Errorf("a 255th namespace: %v", err)
	}
}

func TestValues(t *testing.T) {
	for _, text := range []string{"u8:255", "u8:0", "i8:-128", "i8:127", "i32:-1", "i64:9223372036854775807", "u64:18446744073709551615", "string:",
		"blob:00ff", "blob1:01"} {
		kind, value, _ := strings.Cut(text, ":")
		typ, _ := nvs.ParseType(kind)
		if v, err := nvs.ParseValue(typ, value); err != nil || v.String() != value || v.Type.String() != kind {
			t.Errorf("%s: %v %v (%v)", text, v.Type, v, err)
		}
	}
	for text, want := range map[string]string{"u8:010": "10", "i8:-010": "-10", "u8:0x0C": "12", "i8:-0x0c": "-12"} {
		kind, value, _ := strings.Cut(text, ":")
		typ, _ := nvs.ParseType(kind)
		if v, err := nvs.ParseValue(typ, value); err != nil || v.String() != want {
			t.Errorf("%s: %v (%v)", text, v, err)
		}
	}
	for _, text := range []string{"u8:0b1", "u8:1_0", "u8:256", "u8:-1", "i8:128", "i32:", "u16:x", "blob:0", "blob:xy", "u32:4294967296", "i64:9223372036854775808"} {
		kind, value, _ := strings.Cut(text, ":")
		typ, _ := nvs.ParseType(kind)
		if v, err := nvs.ParseValue(typ, value); err == nil {
			t.Errorf("%s is %v", text, v)
		}
	}
	if _, known := nvs.ParseType("float"); known {
		t.Error("there is a float")
	}
	if _, err := nvs.ParseValue(0x42, "1"); err == nil {
		t.Error("a chunk is a value")
	}
}

// entry writes the first entry of an item to position at of a page, and marks span entries as written.
func entry(image []byte, page, at int, namespace, kind, span, chunk byte, key string, data ...byte) {
	e := image[page*4096+64+at*32:][:32]
	for i := range e {
		e[i] = 0xFF
	}
	copy(e, []byte{namespace, kind, span, chunk})
	copy(e[8:24], make([]byte, 16))
	copy(e[8:24], key)
	copy(e[24:], data)
	binary.LittleEndian.PutUint32(e[4:], crc32.Update(crc32.Update(0xFFFFFFFF, crc32.IEEETable, e[:4]), crc32.IEEETable, e[8:]))
	for i := range int(span) {
		mark(image, page, at+i, 2)
	}
}

// mark sets the state of an entry in the page's bitmap: 3 is empty, 2 is written, and 0 is erased.
func mark(image []byte, page, at int, state byte) {
	b := &image[page*4096+32+at/4]
	*b = *b&^(3<<(at%4*2)) | state<<(at%4*2)
}

func header(image []byte, page int, state, sequence uint32) {
	h := image[page*4096:][:32]
	binary.LittleEndian.PutUint32(h, state)
	binary.LittleEndian.PutUint32(h[4:], sequence)
	h[8] = 0xFE
	binary.LittleEndian.PutUint32(h[28:], crc32.Update(0xFFFFFFFF, crc32.IEEETable, h[4:28]))
}

func erased(pages int) []byte { return bytes.Repeat([]byte{0xFF}, pages*4096) }

// TestWrittenByARobot checks Decode with pages that are not in the order of their sequence numbers,
// with erased and damaged entries, and with entries that are left when the power fails during a write.
func TestWrittenByARobot(t *testing.T) {
	image := erased(4)
	header(image, 2, 0xFFFFFFFC, 7) // older and full
	header(image, 0, 0xFFFFFFFE, 8) // newer and active
	entry(image, 2, 0, 0, 0x01, 1, 0xFF, "audio", 1)
	entry(image, 2, 1, 1, 0x14, 1, 0xFF, "output_volume", 70, 0, 0, 0)
	entry(image, 2, 2, 1, 0x14, 1, 0xFF, "erased", 1, 0, 0, 0)
	mark(image, 2, 2, 0)
	entry(image, 2, 3, 1, 0x01, 1, 0xFF, "kept", 5)
	entry(image, 2, 4, 1, 0x33, 2, 0x07, "unknown", 1, 2, 3, 4, 5, 6, 7, 8)
	copy(image[2*4096+64+5*32:], "whatever it is")
	entry(image, 2, 6, 9, 0x01, 1, 0xFF, "orphan", 9)
	entry(image, 0, 0, 1, 0x14, 1, 0xFF, "output_volume", 80, 0, 0, 0) // replaces the entry on page 2, which was not erased
	entry(image, 0, 1, 1, 0x01, 1, 0xFF, "damaged", 5)
	image[64+32+24] ^= 1
	entry(image, 0, 2, 1, 0x21, 3, 0xFF, "unfinished", 40, 0)
	mark(image, 0, 4, 3)
	entry(image, 0, 5, 1, 0x42, 1, 0x00, "chunk", 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF) // a chunk without an index
	entry(image, 0, 6, 1, 0x48, 1, 0xFF, "blob", 5, 0, 0, 0, 1, 0)                          // an index without its chunk
	p := decode(t, image)
	want := "audio/kept=u8:5\naudio/unknown=type 0x33:0102030405060708" + hex.EncodeToString([]byte("whatever it is")) + strings.Repeat("ff", 18) +
		"\n/orphan=u8:9\naudio/output_volume=i32:80\n"
	if show(p) != want {
		t.Errorf("it is read as\n%s", show(p))
	}
	if d := p.Damaged(); len(d) != 4 {
		t.Errorf("damaged: %q", d)
	}
	set(t, p, "wifi/ssid=string:x")
	again := decode(t, encode(t, p, 0x4000))
	if show(again) != want+"wifi/ssid=string:x\n" || len(again.Damaged()) > 0 {
		t.Errorf("written anew it is\n%s%v", show(again), again.Damaged())
	}
}

func TestNoPartition(t *testing.T) {
	good := encode(t, whole(t), 0x6000)
	encrypted := bytes.Clone(good)
	for n := range 5 {
		for i := n*4096 + 64; i < (n+1)*4096; i++ {
			encrypted[i] ^= 0x5A
		}
	}
	newer := bytes.Clone(good)
	newer[8] = 0xFD
	binary.LittleEndian.PutUint32(newer[28:], crc32.Update(0xFFFFFFFF, crc32.IEEETable, newer[4:28]))
	for name, image := range map[string][]byte{
		"nothing": nil, "a part of a page": good[:5000], "zeros": make([]byte, 0x4000), "text": bytes.Repeat([]byte("<html>.."), 512),
		"encrypted": encrypted, "a newer format": newer, "too large": bytes.Repeat([]byte{0xFF}, nvs.MaxSize+4096),
	} {
		if _, err := nvs.Decode(image); !errors.Is(err, nvs.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p := decode(t, erased(4)); len(p.Items()) != 0 {
		t.Error("an erased partition has items")
	}
	broken := bytes.Clone(good)
	broken[28] ^= 1
	if p := decode(t, broken); len(p.Damaged()) == 0 {
		t.Error("a lost page is not listed")
	}
}

// sameAgain decodes image and returns the result. It fails the test unless the result has the same
// items as p, and no damage.
func sameAgain(t interface{ Fatalf(string, ...any) }, p *nvs.Partition, image []byte) *nvs.Partition {
	q, err := nvs.Decode(image)
	if err != nil || len(q.Damaged()) > 0 || show(q) != show(p) {
		t.Fatalf("%v %v: read as\n%s\nwas\n%s", err, q.Damaged(), show(q), show(p))
	}
	return q
}

// TestInverse checks with random items that Decode returns the items that Encode has written, in the
// same order, and that Encode then writes the same bytes again.
func TestInverse(t *testing.T) {
	value := rapid.Custom(func(t *rapid.T) nvs.Value {
		kind := rapid.SampledFrom([]nvs.Type{nvs.U8, nvs.I8, nvs.U16, nvs.I16, nvs.U32, nvs.I32, nvs.U64, nvs.I64, nvs.String, nvs.String, nvs.Blob,
			nvs.Blob, nvs.OldBlob}).Draw(t, "type")
		length := int(kind & 0x0F)
		switch kind {
		case nvs.String:
			length = rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, nvs.MaxString)).Draw(t, "length")
		case nvs.Blob:
			length = rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 9000)).Draw(t, "length")
		case nvs.OldBlob:
			length = rapid.IntRange(0, 1984).Draw(t, "length")
		}
		data := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte") | 1}, length)
		if length > 0 {
			data[0] = rapid.Byte().Draw(t, "first") | 2
		}
		return nvs.Value{Type: kind, Data: data}
	})
	rapid.Check(t, func(t *rapid.T) {
		p := &nvs.Partition{}
		model := map[string]nvs.Value{}
		for range rapid.IntRange(0, 40).Draw(t, "items") {
			namespace, key := rapid.SampledFrom([]string{"wifi", "a", "n23456789012345"}).Draw(t, "namespace"),
				fmt.Sprint("k", rapid.IntRange(0, 40).Draw(t, "key"))
			v := value.Draw(t, "value")
			must.Succeed(t, p.Set(namespace, key, v))
			model[namespace+"/"+key] = v
		}
		if len(p.Items()) != len(model) {
			t.Fatalf("%d items of %d", len(p.Items()), len(model))
		}
		image, err := p.Encode(0x20000)
		if errors.Is(err, nvs.ErrFull) {
			return
		}
		must.Succeed(t, err)
		q := sameAgain(t, p, image)
		for _, i := range q.Items() {
			if want := model[i.Namespace+"/"+i.Key]; i.Value.Type != want.Type || !bytes.Equal(i.Value.Data, want.Data) {
				t.Fatalf("%s/%s is %v", i.Namespace, i.Key, i.Value)
			}
		}
		if again, err := q.Encode(0x20000); err != nil || !bytes.Equal(again, image) {
			t.Fatalf("written again it is another (%v)", err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	small := &nvs.Partition{}
	set(f, small, "wifi/ssid=string:home", "all/i16=i16:-2", "all/blob=blob:0102")
	f.Add(encode(f, small, nvs.MinSize))
	image := erased(3)
	header(image, 1, 0xFFFFFFFE, 3)
	entry(image, 1, 0, 0, 0x01, 1, 0xFF, "n", 1)
	entry(image, 1, 1, 1, 0x33, 3, 0x07, "unknown", 1)
	f.Add(image)
	f.Fuzz(func(t *testing.T, image []byte) {
		p, err := nvs.Decode(image)
		if err != nil {
			if !errors.Is(err, nvs.ErrFormat) {
				t.Error(err)
			}
			return
		}
		_ = p.Damaged()
		again, err := p.Encode(0x10000)
		if errors.Is(err, nvs.ErrFull) {
			return
		}
		must.Succeed(t, err)
		sameAgain(t, p, again)
	})
}
