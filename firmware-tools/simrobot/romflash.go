package simrobot

import (
	"crypto/md5" // the loader uses it
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"time"
)

// Faults, as the description of the protocol lists them.
const (
	romBadParameter = 0x01
	romUnknown      = 0x05
	romFailed       = 0x06
	romBadSum       = 0x07
	romBadWrite     = 0x08
	romBadLength    = 0x0A
)

// carryOut returns the part of the answer before its status.
func (r *ROM) carryOut(op byte, body []byte, sum uint32) (data []byte, value uint32, fault byte) {
	word := func(n int) int64 {
		if len(body) < 4*n+4 {
			return 0
		}
		return int64(binary.LittleEndian.Uint32(body[4*n:]))
	}
	if r.o.Security&4 != 0 && op != 0x08 && op != 0x0D && op != 0x0B && op != 0x0F && op != 0x02 && op != 0x03 && op != 0x14 {
		return nil, 0, romUnknown // in secure download mode
	}
	if !r.attached && (op == 0x02 || op == 0x0E || op == 0x13) {
		return nil, 0, romFailed
	}
	switch op {
	case 0x02:
		fault = r.begin(word(0), word(1), word(2), word(3), len(body))
	case 0x03:
		fault = r.data(body, byte(sum))
	case 0x08:
		value = 0x20120707
	case 0x09:
		r.setRegister(uint32(word(0)), uint32(word(1)), uint32(word(2)))
	case 0x0A:
		value = r.registers[uint32(word(0))]
	case 0x0B:
		r.limit = word(1)
	case 0x0D:
		r.attached = true
	case 0x0E:
		data, fault = r.read(word(0), word(1))
	case 0x0F:
	case 0x13:
		data, fault = r.sum(word(0), word(1))
	case 0x14:
		data, fault = r.security()
	default:
		fault = romUnknown
	}
	return data, value, fault
}

func (r *ROM) security() (data []byte, fault byte) {
	if r.o.Chip == 0 {
		return nil, romUnknown
	}
	data = binary.LittleEndian.AppendUint32(nil, r.o.Security)
	data = append(data, r.o.Crypt, 0, 0, 0, 0, 0, 0, 0)
	if r.o.Chip == 2 {
		return data, 0
	}
	data = binary.LittleEndian.AppendUint32(data, uint32(r.o.Chip))
	return binary.LittleEndian.AppendUint32(data, 0), 0
}

// setRegister also runs the flash controller's command that reads the flash's id.
func (r *ROM) setRegister(address, value, mask uint32) {
	r.registers[address] = r.registers[address]&^mask | value&mask
	controllers := map[uint32][2]uint32{ // its second command word, and its data
		0x3FF42000: {0x24, 0x80}, 0x3F402000: {0x20, 0x58}, 0x60002000: {0x20, 0x58}, 0x60003000: {0x20, 0x58}, 0x5008D000: {0x20, 0x58},
	}
	offsets, is := controllers[address]
	if !is || value>>18&1 == 0 {
		return
	}
	r.registers[address] &^= 1 << 18 // done
	if r.attached && r.registers[address+offsets[0]] == 7<<28|0x9F {
		r.registers[address+offsets[1]] = 0x4020 | uint32(bits.Len(uint(len(r.flash)))-1)<<16
	}
}

// begin erases whole sectors, which takes time.
func (r *ROM) begin(size, blocks, block, at int64, length int) byte {
	want := 20
	if r.o.Chip == 0 {
		want = 16
	}
	switch {
	case length != want || block == 0 || block > 0x4000 || at%4096 != 0:
		return romBadParameter
	case at+size > r.limit || at+size > int64(len(r.flash)):
		return romFailed
	}
	end := (at + size + 4095) / 4096 * 4096
	for n := at; n < end; n++ {
		r.flash[n] = 0xFF
	}
	if r.o.Fades > 0 {
		r.flash[r.o.Fades] = 0xFF
	}
	r.write = romWrite{at: at, left: blocks, block: block}
	if r.o.Erase > 0 {
		r.mu.Unlock()
		time.Sleep(r.o.Erase * time.Duration((end-at+65535)/65536))
		r.mu.Lock()
	}
	return 0
}

// data writes the next block. In flash, a bit stays 0 until it is erased.
func (r *ROM) data(body []byte, sum byte) byte {
	if len(body) < 16 || int64(binary.LittleEndian.Uint32(body)) != int64(len(body)-16) {
		return romBadLength
	}
	block, want := body[16:], byte(0xEF)
	for _, c := range block {
		want ^= c
	}
	switch {
	case want != sum:
		return romBadSum
	case r.write.left == 0:
		return romFailed
	case int64(len(block)) > r.write.block:
		return romBadLength
	}
	r.writes++
	for n, c := range block {
		at := r.write.at + int64(n)
		if at >= int64(len(r.flash)) || at >= r.limit {
			return romBadWrite
		}
		if r.o.Forget == nil || !r.o.Forget(at) {
			r.flash[at] &= c
		}
	}
	r.write.at += int64(len(block))
	r.write.left--
	return 0
}

// read always answers with 64 bytes.
func (r *ROM) read(at, size int64) (data []byte, fault byte) {
	if size > 64 || at+size > r.limit || at+size > int64(len(r.flash)) {
		return nil, romBadLength
	}
	data = make([]byte, 64)
	copy(data, r.flash[at:at+size])
	return data, 0
}

func (r *ROM) sum(at, size int64) (data []byte, fault byte) {
	if at+size > r.limit || at+size > int64(len(r.flash)) {
		return nil, romBadParameter
	}
	digest := md5.Sum(r.flash[at : at+size])
	return []byte(hex.EncodeToString(digest[:])), 0
}
