package xiaozhi_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"testing"

	"perch/device/xiaozhi"
	"perch/must"
)

var (
	talkKey   = [16]byte{0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c} // of SP 800-38A, F.5.1
	talkNonce = xiaozhi.NewNonce([4]byte{0xde, 0xad, 0xbe, 0xef})
)

// asFirmware returns a datagram as the firmware's MqttProtocol::SendAudio makes it from the nonce.
func asFirmware(t *testing.T, sequence, timestamp byte, opus []byte) []byte {
	t.Helper()
	header := bytes.Clone(talkNonce[:])
	header[3], header[11], header[15] = byte(len(opus)), timestamp, sequence
	block := must.Value(aes.NewCipher(talkKey[:]))(t)
	sealed := make([]byte, len(opus))
	cipher.NewCTR(block, header).XORKeyStream(sealed, opus)
	return append(header, sealed...)
}

func TestDatagramMatchesTheFirmware(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 100, 250} {
		opus := bytes.Repeat([]byte{0x58, 7, 9}, n)[:n]
		want := asFirmware(t, 3, 60, opus)
		p := xiaozhi.Datagram{Sequence: 3, Audio: xiaozhi.Audio{Timestamp: 60, Opus: opus}}
		if got := xiaozhi.NewDatagrams(talkKey, talkNonce, false).Append(nil, p); !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
		got, err := xiaozhi.NewDatagrams(talkKey, talkNonce, false).Parse(want)
		if err != nil || got.Sequence != 3 || got.Timestamp != 60 || !bytes.Equal(got.Opus, opus) {
			t.Errorf("%d bytes: %+v, %v", n, got, err)
		}
	}
}

func TestDirectionsShareNoKeyStream(t *testing.T) {
	p := xiaozhi.Datagram{Sequence: 1, Audio: xiaozhi.Audio{Opus: make([]byte, 32)}}
	ours := xiaozhi.NewDatagrams(talkKey, talkNonce, true).Append(nil, p)
	theirs := xiaozhi.NewDatagrams(talkKey, talkNonce, false)
	if bytes.Equal(ours[16:], theirs.Append(nil, p)[16:]) {
		t.Error("both directions have one key stream")
	}
	if _, err := theirs.Parse(ours); !errors.Is(err, xiaozhi.ErrDatagram) {
		t.Errorf("sent back: %v", err)
	}
}

func TestBadDatagrams(t *testing.T) {
	good := asFirmware(t, 1, 0, make([]byte, 20))
	with := func(i int, b byte) []byte { d := bytes.Clone(good); d[i] = b; return d }
	for name, d := range map[string][]byte{
		"nothing": nil, "half a header": good[:15], "cut": good[:len(good)-1], "too long": append(bytes.Clone(good), 0),
		"type": with(0, 2), "flags": with(1, 1), "size": with(3, 19), "another talk": with(7, 0), "huge": make([]byte, 1401),
	} {
		if p, err := xiaozhi.NewDatagrams(talkKey, talkNonce, false).Parse(d); !errors.Is(err, xiaozhi.ErrDatagram) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func TestReplayWindow(t *testing.T) {
	var w xiaozhi.ReplayWindow
	for i, c := range []struct {
		sequence uint32
		want     bool
	}{
		{0, false}, {1, true}, {1, false}, {3, true}, {2, true}, {2, false}, {66, true}, {3, false}, {4, true}, {4, false}, {2, false},
		{1000, true}, {66, false}, {937, true}, {936, false}, {1 << 31, true}, {1<<32 - 1, true}, {1<<32 - 1, false}, {1, false},
	} {
		if got := w.Accept(c.sequence); got != c.want {
			t.Errorf("step %d, number %d: %v", i, c.sequence, got)
		}
	}
}

func FuzzDatagram(f *testing.F) {
	f.Add([]byte{})
	header, _ := hex.DecodeString("0100000adeadbeef0000003c00000001")
	f.Add(append(header, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		d := xiaozhi.NewDatagrams(talkKey, talkNonce, false)
		p, err := d.Parse(bytes.Clone(datagram))
		if err != nil {
			return
		}
		if again := d.Append(nil, p); !bytes.Equal(again, datagram) {
			t.Errorf("%x is read as %+v, which is written as %x", datagram, p, again)
		}
	})
}
