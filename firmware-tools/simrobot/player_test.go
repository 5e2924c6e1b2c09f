package simrobot

import (
	"testing"
	"time"

	"perch/device/xiaozhi"

	"pgregory.net/rapid"
)

func newPlayer(stats *Stats) *player {
	return &player{
		stats: stats, out: &speaker{}, ready: 2, size: 40, frame: 60 * time.Millisecond,
		params: xiaozhi.AudioParams{SampleRate: 24000, FrameDuration: 60},
	}
}

func TestTheNewestIsDropped(t *testing.T) {
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

// TestQueueOfTheFirmware: 20 packets from 2.5 on, 40 before. Some more are decoded,
// and one is being played.
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

// TestPlayerCounts plays at random times: every packet is counted, and none is
// played before its time.
func TestPlayerCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stats Stats
		p := newPlayer(&stats)
		start := time.Now()
		now := start
		pushed, cut := 0, 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 20).Draw(t, "what") {
			case 0:
				cut += p.reset()
			case 1:
				p.advance(now)
			default:
				p.push(now, xiaozhi.Audio{Opus: []byte{1}})
				pushed++
			}
			waiting := len(p.queue) + len(p.decoded)
			if sum := stats.Played + stats.Dropped + cut + waiting; sum != pushed {
				t.Fatalf("%d packets came, %d are accounted for", pushed, sum)
			}
			if most := int(now.Sub(start)/p.frame) + 1; stats.Played > most || len(p.queue) > p.size {
				t.Fatalf("%d played by %v, %d wait", stats.Played, now.Sub(start), len(p.queue))
			}
		}
	})
}

// TestPlayerKeepsTheClock is late for every frame, and still plays without gaps.
func TestPlayerKeepsTheClock(t *testing.T) {
	var stats Stats
	p := newPlayer(&stats)
	start := time.Now()
	for range 10 {
		p.push(start, xiaozhi.Audio{Opus: []byte{1}})
	}
	for now := start; !p.silent(); now = p.due().Add(20 * time.Millisecond) {
		p.advance(now)
	}
	if got := p.until.Sub(start); got != 600*time.Millisecond {
		t.Errorf("ten packets took %v", got)
	}
}

// TestBadPackets are noise, and sound longer than the hello announced.
func TestBadPackets(t *testing.T) {
	var stats Stats
	p := &player{stats: &stats, out: &speaker{on: true}, ready: 2, size: 40}
	if err := p.open(xiaozhi.AudioParams{SampleRate: 24000, FrameDuration: 20}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, packet := range [][]byte{{0xff, 0xff}, {}, tone} {
		p.push(now, xiaozhi.Audio{Opus: packet})
	}
	p.finish()
	if stats.Bad != 3 || stats.Played != 0 {
		t.Errorf("bad %d, played %d, want 3, 0", stats.Bad, stats.Played)
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
