package romloader

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// op is a command of the loader.
type op byte

const (
	flashBegin      op = 0x02
	flashData       op = 0x03
	syncUp          op = 0x08
	writeReg        op = 0x09
	readReg         op = 0x0A
	spiSetParams    op = 0x0B
	spiAttach       op = 0x0D
	readFlashSlow   op = 0x0E
	changeBaud      op = 0x0F
	spiFlashMD5     op = 0x13
	getSecurityInfo op = 0x14
)

func (o op) String() string {
	return map[op]string{
		flashBegin: "begin to write", flashData: "write", syncUp: "answer", writeReg: "write a register", readReg: "read a register",
		spiSetParams: "take the size of the flash", spiAttach: "attach the flash", readFlashSlow: "read the flash",
		changeBaud: "change the speed", spiFlashMD5: "sum up the flash", getSecurityInfo: "report its security",
	}[o]
}

// request is a command packet: direction, command, length, checksum, data.
func request(o op, data []byte, sum byte) []byte {
	p := append(make([]byte, 0, 8+len(data)), 0, byte(o))
	p = binary.LittleEndian.AppendUint16(p, uint16(len(data)))
	p = binary.LittleEndian.AppendUint32(p, uint32(sum))
	return append(p, data...)
}

// response is an answer packet.
type response struct {
	op    op
	value uint32
	data  []byte // the payload, followed by two or four bytes of status
}

// parseResponse reads a packet; the response shares its memory. A packet whose
// length exceeds its data was damaged.
func parseResponse(p []byte) (response, bool) {
	if len(p) < 8+2 || p[0] != 1 {
		return response{}, false
	}
	r := response{op: op(p[1]), value: binary.LittleEndian.Uint32(p[4:]), data: p[8:]}
	return r, int(binary.LittleEndian.Uint16(p[2:])) <= len(r.data)
}

// payload returns the size bytes before the status. A refusal has only a status.
func (r response) payload(size int) ([]byte, error) {
	if len(r.data) == size+2 || len(r.data) == size+4 {
		if r.data[size] != 0 {
			return nil, &Fault{r.op, r.data[size+1]}
		}
		return r.data[:size], nil
	}
	if len(r.data) <= 4 && r.data[0] != 0 {
		return nil, &Fault{r.op, r.data[1]}
	}
	return nil, errDamaged
}

// Fault is the error for a command that a loader refuses.
type Fault struct {
	did  op
	Code byte // of the loader, as esptool's documentation of its protocol lists them
}

// Codes of faults.
const (
	invalidMessage = 0x05 // also for an unknown command
	badChecksum    = 0x07
)

func (f *Fault) Error() string {
	reasons := map[byte]string{
		0x01: "the parameter is invalid", 0x02: "it has no memory left", 0x04: "it failed to receive", 0x05: "it does not know the message",
		0x06: "it failed", 0x07: "the checksum is wrong", 0x08: "the flash holds something else than was written", 0x09: "the flash cannot be read",
		0x0A: "the length is wrong",
	}
	reason, known := reasons[f.Code]
	if !known {
		reason = "its reason is not known"
	}
	return fmt.Sprintf("the robot's loader refused to %v: %s (%#02x)", f.did, reason, f.Code)
}

var (
	errSilent  = errors.New("the robot does not answer any more: is the cable still in?")
	errDamaged = errors.New("what the robot answers arrives damaged: another cable, or a lower --baud, may help")
)

func words(all ...uint32) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, all) // numbers do not fail
	return b
}
