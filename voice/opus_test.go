package voice_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

func TestEncoderCarriesTheRemainder(t *testing.T) {
	e := newEncoder(t, voice.SpeakerRate)
	packets := 0
	count := func([]byte) error { packets++; return nil }
	for range 10 { // ten pieces of half a frame are five packets
		must.Succeed(t, e.Encode(make([]int16, voice.SpeakerFrame/2), count))
	}
	if packets != 5 {
		t.Errorf("%d packets, want 5", packets)
	}
	if err := e.Flush(count); err != nil || packets != 5 {
		t.Errorf("flushing nothing made %d packets (%v)", packets, err)
	}
	if err := e.Encode(make([]int16, 1), count); err != nil || packets != 5 {
		t.Fatal("one sample made a packet")
	}
	if err := e.Flush(count); err != nil || packets != 6 {
		t.Errorf("flushing one sample made %d packets (%v), want 6", packets, err)
	}
}

func TestEncoderStopsAtAnError(t *testing.T) {
	e := newEncoder(t, voice.SpeakerRate)
	stop := errors.New("stop")
	if err := e.Encode(make([]int16, 10*voice.SpeakerFrame), func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Encode returned %v", err)
	}
}

func TestSoundSurvivesTheCodec(t *testing.T) {
	e := newEncoder(t, voice.SpeakerRate)
	d := newDecoder(t, voice.SpeakerRate)
	var heard []int16
	err := e.Encode(voicetest.Tone(voice.SpeakerRate, 440, 8000, time.Second), func(p []byte) error {
		if len(p) > 500 {
			t.Errorf("a packet of %d bytes", len(p))
		}
		pcm, err := d.Decode(p)
		if len(pcm) != voice.SpeakerFrame {
			t.Errorf("a packet of %d samples", len(pcm))
		}
		heard = append(heard, pcm...)
		return err
	})
	must.Succeed(t, err)
	if db := decibel(levelAt(heard[6000:], voice.SpeakerRate, 440), 8000); db < -1 || db > 1 {
		t.Errorf("a tone came back %.1f dB off", db)
	}
}

func TestDecoderRejectsBrokenPackets(t *testing.T) {
	d := newDecoder(t, voice.MicRate)
	for name, packet := range map[string][]byte{
		"empty": {}, "too large": make([]byte, voice.MaxPacket+1), "a bad frame count": {0x03, 0x00},
	} {
		if pcm, err := d.Decode(packet); !errors.Is(err, voice.ErrPacket) {
			t.Errorf("%s: %d samples, %v", name, len(pcm), err)
		}
	}
	if _, err := d.Decode([]byte{0xf8, 0xff, 0xfe}); err != nil {
		t.Errorf("after refusals a good packet fails: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0xf8, 0xff, 0xfe})
	f.Add([]byte{0x03, 0x00})
	d := newDecoder(f, voice.MicRate)
	f.Fuzz(func(t *testing.T, packet []byte) {
		if pcm, err := d.Decode(packet); err == nil && len(pcm) > voice.MicRate*120/1000 {
			t.Errorf("%d samples", len(pcm))
		}
	})
}

func TestWAVRoundTrip(t *testing.T) {
	var file bytes.Buffer
	pcm := []int16{1, -2, 300, -32768, 32767}
	must.Succeed(t, voice.WriteWAV(&file, 24000, pcm))
	w, err := voice.NewWAVReader(&file)
	if err != nil || w.Rate != 24000 {
		t.Fatalf("%+v, %v", w, err)
	}
	got := make([]int16, 10)
	n, err := w.Read(got)
	if n != 5 || err != nil || got[3] != -32768 {
		t.Errorf("read %v, %d, %v", got, n, err)
	}
	if _, err := w.Read(got); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// stream is a WAV stream of espeak-ng: the sizes in its header are meaningless.
var stream = []byte(
	"RIFF\x24\xf0\xff\x7fWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x22\x56\x00\x00\x44\xac\x00\x00\x02\x00\x10\x00data\x00\xf0\xff\x7f\x01\x00\x02\x00")

func TestWAVOfAStreamIsReadToItsEnd(t *testing.T) {
	w, err := voice.NewWAVReader(bytes.NewReader(stream))
	if err != nil || w.Rate != 22050 {
		t.Fatalf("%+v, %v", w, err)
	}
	got := make([]int16, 10)
	if n, err := w.Read(got); n != 2 || err != nil {
		t.Errorf("%d samples, %v", n, err)
	}
}

func TestBrokenWAVIsRejected(t *testing.T) {
	change := func(at int, b byte) []byte {
		c := bytes.Clone(stream)
		c[at] = b
		return c
	}
	for name, file := range map[string][]byte{
		"empty": {}, "text": []byte("this is no sound at all, but words"), "header only": stream[:20],
		"12 bits": change(34, 12), "six channels": change(22, 6), "0 Hz": change(24, 0)[:44], "fmt too big": change(17, 0xff),
		"data first": append([]byte("RIFF\x00\x00\x00\x00WAVE"), stream[36:]...),
	} {
		if name == "0 Hz" {
			file = bytes.Clone(stream)
			file[24], file[25] = 0, 0
		}
		if _, err := voice.NewWAVReader(bytes.NewReader(file)); !errors.Is(err, voice.ErrWAV) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzWAV(f *testing.F) {
	f.Add(stream)
	f.Fuzz(func(t *testing.T, file []byte) {
		w, err := voice.NewWAVReader(bytes.NewReader(file))
		if err != nil {
			return
		}
		pcm := make([]int16, 100)
		total := 0
		for {
			n, err := w.Read(pcm)
			total += n
			if err != nil {
				break
			}
		}
		if total > len(file) {
			t.Errorf("%d samples of %d bytes", total, len(file))
		}
	})
}
