package image_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"perch/must"
)

// TestPowerCuts checks that the settings are applied if the power fails during the first boot. It records the
// writes to the card in one first boot, and cuts the power before a write in each tenth of them. Of the writes
// after the last flush before the cut, a random half is lost, because a card has a cache.
func TestPowerCuts(t *testing.T) {
	c := newCard(t, everything)
	before, log := filepath.Join(c.dir, "before"), filepath.Join(c.dir, "log")
	c.do("cp", "--sparse=always", c.file, before)
	must.Succeed(t, os.WriteFile(log, nil, 0o600))
	m := c.bootsFrom("-blockdev", "driver=raw,node-name=card,file.driver=file,file.filename="+c.file,
		"-blockdev", "driver=file,node-name=log,filename="+log,
		"-blockdev", "driver=blklogwrites,node-name=logged,file=card,log=log", "-device", "virtio-blk-pci,drive=logged,romfile=")
	took := m.ready()
	m.cut()
	all := writes(t, log)
	t.Logf("ready after %s, and %d writes", took.Round(time.Second), len(all))
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 0))
			at := (int(seed)*len(all) + chance.IntN(len(all))) / 10
			cut := &card{t: t, dir: c.dir, file: filepath.Join(t.TempDir(), "card"), key: c.key}
			cut.do("cp", "--sparse=always", before, cut.file)
			lost := replay(t, log, all[:at], cut.file, chance)
			m := cut.boots()
			took := m.ready()
			m.wants(chosen())
			t.Logf("power failed before write %d, %d of those before were lost; ready %s after the next start", at, lost, took.Round(time.Second))
		})
	}
}

// write is a write to a card.
type write struct {
	flags    uint64
	at, size int64 // on the card, in bytes
	data     int64 // offset of the written bytes in the log
}

// Flags of a write.
const (
	flushes   = 1 << iota // earlier writes are moved from the cache to the card
	forced                // the write bypasses the cache
	discarded             // the write has no data
)

// writes reads a log of qemu's driver blklogwrites, which has the format of Linux's dm-log-writes.
func writes(t *testing.T, log string) (all []write) {
	t.Helper()
	f := must.Value(os.Open(log))(t)
	defer f.Close()
	var head struct {
		Magic, Version, Entries uint64
		Sector                  uint32
	}
	if err := binary.Read(f, binary.LittleEndian, &head); err != nil || head.Magic != 0x6a736677736872 || head.Entries < 100 {
		t.Fatalf("the log begins with %+v (%v)", head, err)
	}
	sector := int64(head.Sector)
	next := sector
	for range head.Entries {
		var entry struct{ Sector, Sectors, Flags, Length uint64 }
		must.Succeed(t, binary.Read(io.NewSectionReader(f, next, 32), binary.LittleEndian, &entry))
		w := write{entry.Flags, int64(entry.Sector) * sector, int64(entry.Sectors) * sector, next + sector}
		if next = w.data; w.flags&discarded == 0 {
			next += w.size
		}
		all = append(all, w)
	}
	return all
}

// replay writes all to a card, except for those writes that the power failure loses, and returns the number of lost
// writes.
func replay(t *testing.T, log string, all []write, card string, chance *rand.Rand) (lost int) {
	t.Helper()
	from := must.Value(os.Open(log))(t)
	defer from.Close()
	to := must.Value(os.OpenFile(card, os.O_WRONLY, 0))(t)
	defer to.Close()
	sure := 0
	for i, w := range all {
		if w.flags&flushes != 0 {
			sure = i
		}
	}
	for i, w := range all {
		switch {
		case w.flags&discarded != 0 || w.size == 0:
		case i >= sure && w.flags&forced == 0 && chance.IntN(2) == 0:
			lost++
		default:
			must.Value(io.Copy(io.NewOffsetWriter(to, w.at), io.NewSectionReader(from, w.data, w.size)))(t)
		}
	}
	return lost
}
