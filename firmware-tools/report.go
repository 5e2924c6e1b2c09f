package main

import (
	"fmt"
	"time"

	"perch/firmware-tools/simrobot"
)

func answered(s simrobot.Stats) int {
	n := 0
	for _, t := range s.Turns {
		if t.Answered {
			n++
		}
	}
	return n
}

// shownTurn is a turn in JSON. Times are in milliseconds.
type shownTurn struct {
	Turn        int     `json:"turn"` // from 1
	Text        string  `json:"text"`
	Transcript  string  `json:"transcript,omitempty"`
	Answered    bool    `json:"answered"`
	Interrupted bool    `json:"interrupted"`
	FirstSound  float64 `json:"first_sound_ms"`
	Length      float64 `json:"length_ms"`
	Packets     int     `json:"packets"`
	Underruns   int     `json:"underruns"`
	Dropped     int     `json:"dropped"`
}

// shownSound is the sound of a robot, or of many, in JSON. Counts are of packets,
// times in milliseconds.
type shownSound struct {
	Robots    int     `json:"robots"`
	Turns     int     `json:"turns"`
	Answered  int     `json:"answered"`
	Received  int     `json:"received"`
	Played    int     `json:"played"`
	Dropped   int     `json:"dropped"`
	Ignored   int     `json:"ignored"`
	Underruns int     `json:"underruns"`
	HelloP50  float64 `json:"hello_p50_ms"`
	HelloP99  float64 `json:"hello_p99_ms"`
	FirstP50  float64 `json:"first_sound_p50_ms"`
	FirstP99  float64 `json:"first_sound_p99_ms"`
	GapP50    float64 `json:"gap_p50_ms"`
	GapP99    float64 `json:"gap_p99_ms"`
}

func milliseconds(d time.Duration) float64 { return float64(d.Round(10*time.Microsecond)) / 1e6 }

// report prints a line for each turn, and one for the sound as a whole.
func report(out lines, s simrobot.Stats) {
	if out.json {
		for i, t := range s.Turns {
			out.object(shownTurn{i + 1, t.Text, t.Transcript, t.Answered, t.Interrupted, milliseconds(t.FirstAudio), milliseconds(t.Length),
				t.Packets,
				t.Underruns, t.Dropped})
		}
		summary(out, []simrobot.Stats{s})
		return
	}
	w := out.to
	for i, t := range s.Turns {
		if t.Interrupted {
			fmt.Fprintf(w, "turn %d: interrupted, and quiet after %v\n", i+1, ms(t.QuietAfter))
			continue
		}
		if !t.Answered {
			fmt.Fprintf(w, "turn %d: %q was not answered\n", i+1, t.Text)
			continue
		}
		fmt.Fprintf(w, "turn %d: first sound after %v, %v long, %d packets, %d underruns, %d dropped\n",
			i+1, ms(t.FirstAudio), ms(t.Length), t.Packets, t.Underruns, t.Dropped)
	}
	if s.HelloLatency == 0 {
		return
	}
	fmt.Fprintf(w, "sound: %d sent, %d received, %d played, %d dropped, %d ignored, %d cut, %d bad, %d underruns, at most %d queued, gaps p50 %v "+
		"p99 %v\n",
		s.Sent, s.Received, s.Played, s.Dropped, s.Ignored, s.Cut, s.Bad, s.Underruns, s.MaxQueue,
		ms(simrobot.Quantile(s.Gaps, 0.5)), ms(simrobot.Quantile(s.Gaps, 0.99)))
	if s.CutByBargeIn+s.Late > 0 {
		fmt.Fprintf(w, "interruptions: %d packets were cut off by them, %d came after them\n", s.CutByBargeIn, s.Late)
	}
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
