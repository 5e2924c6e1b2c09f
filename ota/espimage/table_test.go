package espimage_test

import (
	"bytes"
	"crypto/md5" // the format has it
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"perch/must"
	"perch/ota/espimage"
)

// entry is an entry of a partition table.
type entry struct {
	name          string
	kind, subtype byte
	at, size      uint32
}

// xiaozhi is the firmware's table for robots with 16 MB.
func xiaozhi() []entry {
	return []entry{
		{"nvs", 1, 2, 0x9000, 0x4000}, {"otadata", 1, 0, 0xD000, 0x2000}, {"phy_init", 1, 1, 0xF000, 0x1000},
		{"ota_0", 0, 0x10, 0x20000, 0x3F0000}, {"ota_1", 0, 0x11, 0x410000, 0x3F0000}, {"assets", 1, 0x82, 0x800000, 0x800000},
	}
}

func table(entries []entry, sum bool) []byte {
	var out []byte
	for _, e := range entries {
		b := append(make([]byte, 0, 32), 0xAA, 0x50, e.kind, e.subtype)
		b = binary.LittleEndian.AppendUint32(b, e.at)
		b = binary.LittleEndian.AppendUint32(b, e.size)
		b = append(b, e.name...)
		out = append(out, b[:32]...)
	}
	if sum {
		digest := md5.Sum(out)
		out = append(append(out, 0xEB, 0xEB), bytes.Repeat([]byte{0xFF}, 14)...)
		out = append(out, digest[:]...)
	}
	return append(out, bytes.Repeat([]byte{0xFF}, 0xC00-len(out))...)
}

func TestTable(t *testing.T) {
	for _, sum := range []bool{true, false} {
		got, err := espimage.ParseTable(table(xiaozhi(), sum))
		if err != nil || len(got) != 6 || got.End() != 16<<20 {
			t.Fatal(got, err)
		}
		if p, is := got.Named("ota_1"); !is || p.Offset != 0x410000 || p.Size != 0x3F0000 || !p.IsApp() || p.IsSettings() {
			t.Error(p, is)
		}
		if p, is := got.At(0x800001); !is || p.Name != "assets" {
			t.Error(p, is)
		}
		if p, is := got.At(0x10000); is {
			t.Error(p)
		}
		if p, is := got.OTAData(); !is || p.Name != "otadata" {
			t.Error(p, is)
		}
	}
	damaged := table(xiaozhi(), true)
	damaged[4+32] ^= 0x10
	overlap := xiaozhi()
	overlap[4].at = 0x20000
	early := xiaozhi()
	early[0].at = 0x8000
	odd := xiaozhi()
	odd[0].at = 0x9100
	for want, b := range map[string][]byte{
		"MD5 is wrong":          damaged,
		"ota_1 at 0x20000 over": table(overlap, true),
		"nvs at 0x8000":         table(early, true),
		"nvs at 0x9100":         table(odd, true),
		"is empty":              table(nil, false),
		"begins with 0x00 0x00": make([]byte, 0xC00),
	} {
		_, err := espimage.ParseTable(b)
		if word := refused(t, want, err); word != espimage.BadPartitions || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// record returns a record of otadata.
func record(number, state uint32) []byte {
	b := bytes.Repeat([]byte{0xFF}, 32)
	binary.LittleEndian.PutUint32(b, number)
	binary.LittleEndian.PutUint32(b[24:], state)
	binary.LittleEndian.PutUint32(b[28:], crc32.Update(0xFFFFFFFF, crc32.IEEETable, b[:4]))
	return b
}

func TestStarts(t *testing.T) {
	const undefined, newImage, pending, valid, invalid, aborted = 0xFFFFFFFF, 0, 1, 2, 3, 4
	blank := bytes.Repeat([]byte{0xFF}, 32)
	damaged := record(6, valid)
	damaged[30] ^= 1
	for n, c := range []struct {
		first, second []byte
		want          string
	}{
		{blank, blank, "ota_0"},
		{nil, nil, "ota_0"},
		{record(1, undefined), blank, "ota_0"},
		{record(1, valid), record(2, newImage), "ota_1"},
		{record(3, valid), record(2, valid), "ota_0"},
		{record(1, valid), record(2, pending), "ota_0"}, // the boot loader rolls ota_1 back
		{record(1, valid), record(2, aborted), "ota_0"},
		{record(2, valid), record(3, invalid), "ota_1"},
		{record(1, valid), damaged, "ota_0"},
		{record(0, valid), blank, "ota_0"},
		{record(4_000_000_000, valid), blank, "ota_1"},
	} {
		parts := must.Value(espimage.ParseTable(table(xiaozhi(), true)))(t)
		if p, is := parts.StartPartition(c.first, c.second); !is || p.Name != c.want {
			t.Errorf("%d: %v, not %s", n, p, c.want)
		}
		for _, name := range []string{"ota_0", "ota_1"} { // the selected partition must be started
			p, _ := parts.Named(name)
			b, err := parts.SelectSlot(p)
			if err != nil || len(b) != 0x2000 {
				t.Fatal(err)
			}
			// the checksums that ESP-IDF writes
			if want := map[string]string{"ota_0": "\x9a\x98\x43\x47", "ota_1": "\x74\x37\xf6\x55"}[name]; string(b[28:32]) != want {
				t.Errorf("the checksum is %x", b[28:32])
			}
			if got, is := parts.StartPartition(b, b[4096:]); !is || got != p {
				t.Errorf("%v, not %v", got, p)
			}
		}
	}
}

func TestTablesWithAndWithoutSlots(t *testing.T) {
	small := must.Value(espimage.ParseTable(table([]entry{{"nvs", 1, 2, 0x9000, 0x6000}, {"factory", 0, 0, 0x10000, 0x2F0000}}, true)))(t)
	p, is := small.StartPartition(nil, nil)
	if _, choice := small.OTAData(); !is || choice || p.Name != "factory" {
		t.Error(p, is)
	}
	both := must.Value(espimage.ParseTable(table(append([]entry{{"factory", 0, 0, 0x10000, 0x10000}}, xiaozhi()...), true)))(t)
	if p, is := both.StartPartition(nil, nil); !is || p.Name != "factory" {
		t.Error(p)
	}
	if p, is := both.StartPartition(record(1, 2), nil); !is || p.Name != "ota_0" {
		t.Error(p)
	}
	factory, _ := both.Named("factory")
	b, err := both.SelectSlot(factory)
	if got, _ := both.StartPartition(b, b[4096:]); err != nil || got != factory {
		t.Error(got, err)
	}
	assets, _ := both.Named("assets")
	if _, err := both.SelectSlot(assets); err == nil {
		t.Error("a robot is to start its fonts")
	}
	none, err := espimage.ParseTable(table(xiaozhi()[:3], true))
	if p, is := none.StartPartition(record(1, 2), nil); err != nil || is {
		t.Error(p, err)
	}
}

// merged returns a whole flash in the format that esptool's merge-bin writes.
func merged(chip byte, at int, entries []entry, app []byte) []byte {
	out := bytes.Repeat([]byte{0xFF}, 0x20000+len(app))
	copy(out[at:], []byte{0xE9, 3, 2, 0x4F, 0, 0, 0, 0, 0xEE, 0, 0, 0, chip, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})
	copy(out[0x8000:], table(entries, true))
	copy(out[0x20000:], app)
	return out
}

func TestCheckWhole(t *testing.T) {
	robot := espimage.WholeTarget{Target: espimage.Target{Chip: 9, Revision: 2}, Flash: 16 << 20}
	app := stackChan().bytes()
	good := merged(9, 0, xiaozhi(), app)
	if parts, err := espimage.CheckWhole(good, robot); err != nil || len(parts) != 6 {
		t.Fatal(parts, err)
	}
	tight := xiaozhi()
	tight[3].size = 0x1000
	second := bytes.Clone(good)
	copy(second[0xD000:], record(2, 2))
	damaged := bytes.Clone(good)
	damaged[0x20000+5000] ^= 1
	esp32 := stackChan()
	esp32.chip = 0
	for want, c := range map[string]struct {
		b     []byte
		robot espimage.WholeTarget
	}{
		"and the robot's flash 131072":         {good, espimage.WholeTarget{Target: robot.Target, Flash: 128 << 10}},
		"ends before its partition table":      {good[:0x8000], robot},
		"no boot loader where":                 {good, espimage.WholeTarget{Target: robot.Target, Flash: 16 << 20, BootLoader: 0x1000}},
		"the boot loader is built for esp32c3": {merged(5, 0, xiaozhi(), app), robot},
		"no boot loader":                       {merged(9, 0x1000, xiaozhi(), app), robot},
		"needs 16777216 bytes of flash":        {good, espimage.WholeTarget{Target: robot.Target, Flash: 8 << 20}},
		"the partition table is empty":         {merged(9, 0, nil, app), robot},
		"no partition for an application":      {merged(9, 0, xiaozhi()[:3], app), robot},
		"ota_0 of the image: the image's chec": {damaged, robot},
		"ota_0 of the image: the image is bui": {merged(9, 0, xiaozhi(), esp32.bytes()), robot},
		"and the robot's partition takes 4096": {merged(9, 0, tight, app), robot},
		"ota_1 of the image: the file is emp":  {second, robot}, // the robot would start an application that is missing
		"ota_0 of the image: the image needs":  {good, espimage.WholeTarget{Target: espimage.Target{Chip: 9}, Flash: 16 << 20}},
	} {
		_, err := espimage.CheckWhole(c.b, c.robot)
		if refused(t, want, err) == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestAppOf(t *testing.T) {
	app := stackChan().bytes()
	if a, is := espimage.AppOf(app[:espimage.AppStart]); !is || a.Project != "stack-chan" || a.Version != "1.2.4" {
		t.Error(a, is)
	}
	if _, is := espimage.AppOf(app[:espimage.AppStart-1]); is {
		t.Error("half a description")
	}
}

func FuzzTable(f *testing.F) {
	f.Add(table(xiaozhi(), true), record(1, 2), record(2, 1))
	f.Add(table(xiaozhi(), false), []byte{}, bytes.Repeat([]byte{0xFF}, 32))
	f.Fuzz(func(t *testing.T, b, first, second []byte) {
		parts, err := espimage.ParseTable(b)
		if err != nil {
			return
		}
		for n, p := range parts {
			if n > 0 && p.Offset < parts[n-1].Offset+parts[n-1].Size || p.Offset < 0x9000 || p.Size <= 0 {
				t.Errorf("%v", parts)
			}
		}
		p, is := parts.StartPartition(first, second)
		if is && !p.IsApp() {
			t.Errorf("it starts %v", p)
		}
		if !is {
			return
		}
		choice, err := parts.SelectSlot(p)
		if got, _ := parts.StartPartition(choice, choice[4096:]); err != nil || got.Type != p.Type {
			t.Errorf("%v, not %v: %v", got, p, err)
		}
	})
}

func FuzzWhole(f *testing.F) {
	small := []entry{{"factory", 0, 0, 0x9000, 0x10000}}
	f.Add(table(small, true)[:96], stackChan().bytes()[:600])
	f.Fuzz(func(t *testing.T, parts, app []byte) {
		b := merged(9, 0, nil, nil)
		copy(b[0x8000:], parts)
		copy(b[0x9000:], app)
		_, _ = espimage.CheckWhole(b, espimage.WholeTarget{Target: espimage.Target{Chip: 9, Revision: -1}, Flash: 16 << 20})
	})
}
