package voice_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"perch/voice"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestPacerGivesALeadAndThenKeepsTime(t *testing.T) {
	var p voice.Pacer
	now := start
	atOnce := 0
	for range 100 {
		if due := p.NextSend(); due.After(now) {
			if now.Equal(start) {
				atOnce = int(p.Lead(now) / voice.FrameDuration)
			} else if gap := due.Sub(now); gap != voice.FrameDuration {
				t.Fatalf("a gap of %s", gap)
			}
			now = due
		}
		p.Sent(now)
	}
	if atOnce != 6 {
		t.Errorf("%d packets left at once, want 6", atOnce)
	}
	if p.Underruns() != 0 {
		t.Errorf("%d underruns", p.Underruns())
	}
	if want := start.Add(100 * voice.FrameDuration); !p.PlayedUntil().Equal(want) {
		t.Errorf("played at %s, want %s", p.PlayedUntil(), want)
	}
}

func TestPacerForgetsADelay(t *testing.T) {
	var p voice.Pacer
	now := start
	for i := range 50 {
		if due := p.NextSend(); due.After(now) {
			now = due
		}
		if i == 20 {
			now = now.Add(100 * time.Millisecond) // one packet is sent late
		}
		p.Sent(now)
	}
	if want := start.Add(50 * voice.FrameDuration); !p.PlayedUntil().Equal(want) {
		t.Errorf("a late wake-up moved the end from %s to %s", want, p.PlayedUntil())
	}
}

func TestPacerGrowsItsLeadAfterTheRobotRanDry(t *testing.T) {
	var p voice.Pacer
	p.Sent(start)
	late := start.Add(500 * time.Millisecond)
	p.Sent(late)
	if p.Underruns() != 1 {
		t.Errorf("%d underruns, want 1", p.Underruns())
	}
	sent := 1
	for !p.NextSend().After(late) {
		p.Sent(late)
		sent++
	}
	if lead := p.Lead(late); lead <= 600*time.Millisecond-voice.FrameDuration || lead > 660*time.Millisecond {
		t.Errorf("the lead is %s after %d packets", lead, sent)
	}
}

// TestPacerFitsTheQueue checks how many packets are sent at once: as many as
// the lead allows for a long queue, and fewer for a short or unknown queue.
func TestPacerFitsTheQueue(t *testing.T) {
	for queue, want := range map[int]struct{ first, grown int }{40: {6, 11}, 20: {6, 10}, 0: {6, 10}, 8: {4, 4}, 1: {1, 1}} {
		p := voice.Pacer{Queue: queue}
		fill := func(now time.Time) (n int) {
			p.Sent(now)
			for n = 1; !p.NextSend().After(now); n++ {
				p.Sent(now)
			}
			return n
		}
		if n := fill(start); n != want.first {
			t.Errorf("a queue of %d: %d packets at once, want %d", queue, n, want.first)
		}
		if n := fill(start.Add(5 * time.Second)); n != want.grown || p.Underruns() != 1 {
			t.Errorf("a queue of %d: %d packets after it ran dry, want %d", queue, n, want.grown)
		}
	}
}

// TestPacerProperties checks that with any delays before packets are sent, the
// robot never has more than a second of sound to play, or more packets than
// half of its queue.
func TestPacerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queue := rapid.SampledFrom([]int{0, 2, 7, 20, 40}).Draw(t, "queue")
		p := voice.Pacer{Queue: queue}
		most := queue / 2
		if queue == 0 {
			most = 10
		}
		now := start
		for range rapid.IntRange(1, 300).Draw(t, "packets") {
			if due := p.NextSend(); due.After(now) {
				now = due
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "delay")) * time.Millisecond)
			p.Sent(now)
			if lead := p.Lead(now); lead > time.Second || lead > time.Duration(most)*voice.FrameDuration {
				t.Fatalf("a lead of %s in a queue of %d", lead, queue)
			}
		}
	})
}
