package simrobot

import (
	"testing"
	"time"

	"perch/device/xiaozhi"
)

func newPlayer(stats *Stats) *player {
	return &player{
		stats: stats, out: &speaker{}, ready: 2, size: 40, frame: 60 * time.Millisecond,
		params: xiaozhi.AudioParams{SampleRate: 24000, FrameDuration: 60},
	}
}

func TestFullQueueDropsTheNewest(t *testing.T) {
	var stats Stats
	p := newPlayer(&stats)
	now := time.Now()
	for i := range 50 {
		p.push(now, xiaozhi.Audio{Opus: []byte{byte(i)}})
	}
	if first, last := p.queue[0].Opus[0], p.queue[len(p.queue)-1].Opus[0]; len(p.queue) != 40 || first != 3 || last != 42 {
		t.Errorf("%d packets wait, from %d to %d, want 40 from 3 to 42", len(p.queue), first, last)
	}
}

// TestQueueOfTheFirmware checks the size of the queue: 20 packets in firmware 2.5, and 40 packets in the
// others. The robot also holds decoded frames and the frame being played.
func TestQueueOfTheFirmware(t *testing.T) {
	for firmware, want := range map[string]int{"2.1": 7, "2.2.4": 7, "2.4": 7, "2.5": 27, "dotty": 5} {
		stats, err := talk(t, Options{Stay: true, Firmware: firmware}, func(s *server, _ *Robot) {
			s.opens(append(firstTexts(firmware), listenAuto)...)
			s.text(ttsStart, sentence)
			time.Sleep(20 * time.Millisecond)
			s.sound(50)
			time.Sleep(4 * time.Second)
		})
		queue := 40
		if firmware == "2.5" {
			queue = 20
		}
		if err != nil || stats.Dropped != want || stats.Played != 50-want || stats.MaxQueue != queue {
			t.Errorf("%s drops %d of 50 packets and plays %d, at most %d queued, want %d (%v)", firmware, stats.Dropped, stats.Played, stats.MaxQueue,
				want, err)
		}
	}
}

func TestQuantile(t *testing.T) {
	d := []time.Duration{4, 1, 3, 2}
	for q, want := range map[float64]time.Duration{0: 1, 0.25: 1, 0.5: 2, 0.75: 3, 0.99: 4, 1: 4} {
		if got := Quantile(d, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if Quantile(nil, 0.5) != 0 || d[0] != 4 {
		t.Error("nothing has no quantile, and what is given is not sorted in place")
	}
}
