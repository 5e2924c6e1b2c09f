package romloader

import (
	"bytes"
	"context"
	"crypto/md5" // the loader uses it; it detects damage, not forgery
	"errors"
	"fmt"
	"time"
)

const (
	// Sector is the unit in which flash is erased, in bytes.
	Sector = 4096

	// Reach is how much of a flash a loader addresses, in bytes: its addresses have
	// three bytes, and wrap around.
	Reach = 16 << 20

	blockSize = 1024       // bytes of one packet of data
	pieceSize = 128 * 1024 // bytes that are erased, written and verified together
)

// Attach prepares the flash, and reads its size.
func (l *Loader) Attach(ctx context.Context) error {
	if l.Chip == 18 && (l.Revision == 301 || l.Revision == 302) {
		return unknownChip(fmt.Sprintf("an %v of revision %d.%d, which starts with its flash switched off", l.Chip, l.Revision/100, l.Revision%100))
	}
	pads, err := l.pads(ctx)
	if err != nil {
		return fmt.Errorf("attach the flash: %w", err)
	}
	if _, _, err := l.command(ctx, spiAttach, words(pads, 0), 0); err != nil {
		return fmt.Errorf("attach the flash: %w", err)
	}
	id, err := l.flashID(ctx)
	if err != nil {
		return fmt.Errorf("ask for the size of the flash: %w", err)
	}
	size, known := sizeOf(id)
	if !known {
		return fmt.Errorf("the size of the robot's flash is not known (its id is %#06x): if its cable is sound, write it with Espressif's esptool",
			id)
	}
	const block, page, statusMask = 64 << 10, 256, 0xFFFF
	if _, _, err := l.command(ctx, spiSetParams, words(0, uint32(size), block, Sector, page, statusMask), 0); err != nil {
		return fmt.Errorf("set the size of the flash: %w", err)
	}
	l.Size = size
	return nil
}

// pads returns the pins of the flash: 0 for the usual ones. An ESP32 with a flash
// in its package has others, in its eFuses.
func (l *Loader) pads(ctx context.Context) (uint32, error) {
	if l.Chip != 0 {
		return 0, nil
	}
	r := &registers{loader: l, base: l.model.efuse}
	w5, w3 := r.word(ctx, 0, 5), r.word(ctx, 0, 3)
	clk, q, d, cs, hd := w5&31, w5>>5&31, w5>>10&31, w5>>15&31, w3>>4&31
	return hd<<24 | cs<<18 | d<<12 | q<<6 | clk, r.err
}

// flashID sends JEDEC's command 0x9F to the flash: it returns manufacturer, type,
// and the size as a power of two.
func (l *Loader) flashID(ctx context.Context) (uint32, error) {
	const command, miso, run, readID = 1 << 31, 1 << 28, 1 << 18, 0x9F
	s := l.model.spi
	r := &registers{loader: l}
	usr, usr2 := r.at(ctx, s.usr), r.at(ctx, s.usr2)
	if r.err != nil {
		return 0, r.err
	}
	for _, each := range [][2]uint32{{s.miso, 24 - 1}, {s.usr, command | miso}, {s.usr2, 7<<28 | readID}, {s.w0, 0}, {s.cmd, run}} {
		if err := l.writeRegister(ctx, each[0], each[1]); err != nil {
			return 0, err
		}
	}
	for range 10 {
		if r.at(ctx, s.cmd)&run == 0 {
			break
		}
	}
	id := r.at(ctx, s.w0)
	if r.err != nil {
		return 0, r.err
	}
	return id, errors.Join(l.writeRegister(ctx, s.usr, usr), l.writeRegister(ctx, s.usr2, usr2))
}

// sizeOf returns the size by a flash's id, in bytes. For larger sizes, some makers
// go on from 0x20, and others have a second row from 0x32.
func sizeOf(id uint32) (int64, bool) {
	switch n := id >> 16 & 0xFF; {
	case n >= 0x12 && n <= 0x1C:
		return 1 << n, true
	case n >= 0x20 && n <= 0x22:
		return 64 << 20 << (n - 0x20), true
	case n >= 0x32 && n <= 0x3A:
		return 1 << (n - 0x20), true
	}
	return 0, false
}

// mismatch is the error for flash whose content is not what was written.
func mismatch(at int64) error {
	return fmt.Errorf("the flash at %#x does not hold what was written: try another cable, a port with more power or a lower --baud; if it stays "+
		"so, that flash is worn out", at)
}

// Write writes data from the beginning of a sector, and verifies it. Pieces that are
// there already are left alone. The rest of the last sector is erased. It reports
// how many bytes are done. After an error some of it may be erased or written.
func (l *Loader) Write(ctx context.Context, at int64, data []byte, done func(bytes int)) error {
	if at+int64(len(data)) > Reach {
		return errors.New("the loader in the robot's chip does not reach beyond 16 MB of flash; Espressif's esptool does")
	}
	if at < 0 || at%Sector != 0 || at+int64(len(data)) > l.Size {
		return fmt.Errorf("%d bytes at %#x are not within the flash of %d bytes, from a sector's beginning on", len(data), at, l.Size)
	}
	for from := 0; from < len(data); from += pieceSize {
		piece := data[from:min(from+pieceSize, len(data))]
		if err := l.writePiece(ctx, at+int64(from), piece, func(n int) { done(from + n) }); err != nil {
			return fmt.Errorf("write the flash at %#x: %w", at+int64(from), err)
		}
	}
	sum, err := l.MD5(ctx, at, int64(len(data)))
	if err == nil && sum != md5.Sum(data) {
		err = mismatch(at)
	}
	return err
}

// writePiece starts again after a lost answer: the block may have been written, and
// sending it twice would move the rest.
func (l *Loader) writePiece(ctx context.Context, at int64, piece []byte, done func(int)) error {
	want := md5.Sum(piece)
	sum, err := l.MD5(ctx, at, int64(len(piece)))
	for try := 0; err == nil && sum != want; try++ {
		if try == tries {
			return mismatch(at)
		}
		if err = l.send(ctx, at, piece, done); lost(err) && try < tries-1 {
			err = l.recover(ctx)
		}
		if err == nil {
			sum, err = l.MD5(ctx, at, int64(len(piece)))
		}
	}
	if err == nil {
		done(len(piece))
	}
	return err
}

// send erases, and sends the blocks.
func (l *Loader) send(ctx context.Context, at int64, piece []byte, done func(int)) error {
	const erase = 40 * time.Second // a megabyte, of a slow flash
	blocks := (len(piece) + blockSize - 1) / blockSize
	begin := words(uint32(blocks*blockSize), uint32(blocks), blockSize, uint32(at))
	if l.Chip != 0 {
		begin = append(begin, 0, 0, 0, 0) // not encrypted; the ESP32 has no such field
	}
	if err := l.step(ctx, flashBegin, begin, 0, commandTimeout+erase*pieceSize/1e6); err != nil {
		return err
	}
	for n := range blocks {
		block := bytes.Repeat([]byte{0xFF}, blockSize)
		copy(block, piece[n*blockSize:])
		sum := byte(0xEF)
		for _, c := range block {
			sum ^= c
		}
		if err := l.step(ctx, flashData, append(words(blockSize, uint32(n), 0, 0), block...), sum, commandTimeout); err != nil {
			return err
		}
		done(min((n+1)*blockSize, len(piece)))
	}
	return nil
}

// step sends a command that may not be carried out twice: it is sent again only if
// the loader reports that it was not carried out.
func (l *Loader) step(ctx context.Context, o op, data []byte, sum byte, timeout time.Duration) (err error) {
	for range tries {
		var r response
		if r, err = l.once(ctx, o, data, sum, timeout); err == nil {
			_, err = r.payload(0)
		}
		if _, refused := errors.AsType[*Fault](err); !lost(err) || !refused {
			return err
		}
		l.drain(ctx, syncTimeout)
	}
	return err
}

// Faster changes the speed in bits a second: the loader's, and then the port's by set.
func (l *Loader) Faster(ctx context.Context, baud int, set func(baud int) error) error {
	asked, err := l.speed(ctx, baud)
	if err == nil {
		err = l.step(ctx, changeBaud, words(asked, 0), 0, commandTimeout)
	}
	if err == nil {
		err = set(baud)
	}
	if err == nil {
		err = pause(ctx, 50*time.Millisecond) // data sent meanwhile is noise
	}
	if err == nil {
		err = l.recover(ctx)
	}
	if err != nil {
		return fmt.Errorf("change to %d baud: %w", baud, err)
	}
	return nil
}

// speed returns the speed to request. An ESP32 measures its crystal against an
// oscillator that drifts, and so misses the requested speed.
func (l *Loader) speed(ctx context.Context, baud int) (uint32, error) {
	if l.Chip != 0 {
		return uint32(baud), nil
	}
	const calibration = 0x3FF5F06C
	r := &registers{loader: l, base: l.model.efuse}
	measured := uint64(r.at(ctx, calibration)>>7) * 15625 * uint64(r.word(ctx, 0, 4)&0xFF) / 40
	crystal := uint64(40_000_000)
	if measured <= 33_000_000 {
		crystal = 26_000_000
	}
	if measured < 20_000_000 || measured > 50_000_000 {
		return uint32(baud), r.err // it did not measure
	}
	return uint32(uint64(baud) * measured / crystal), r.err
}
