package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"perch/device"
	"perch/firmware-tools/simrobot"
)

// countAnswered returns the number of turns that were answered with sound.
func countAnswered(s simrobot.Stats) int {
	n := 0
	for _, t := range s.Turns {
		if t.Answered {
			n++
		}
	}
	return n
}

// jsonTurn is the JSON output for one turn.
type jsonTurn struct {
	Turn        int     `json:"turn"` // number, counted from 1
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

// jsonSummary is the JSON output for all robots together. Received, Played, Dropped and Ignored
// count packets of sound. P50 is a median and P99 a 99th percentile, in milliseconds. Hello is the
// time to the server's hello, First is the time to the first sound of an answer, and Gap is the time
// between two packets of sound.
type jsonSummary struct {
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

// milliseconds returns a duration in milliseconds, rounded to 10 µs.
func milliseconds(d time.Duration) float64 { return float64(d.Round(10*time.Microsecond)) / 1e6 }

// printReport prints each turn of the conversation, and then the counters of the robot's sound. As text
// it omits the counters if the server has sent no hello.
func printReport(out output, s simrobot.Stats) {
	if out.json {
		for i, t := range s.Turns {
			out.object(jsonTurn{i + 1, t.Text, t.Transcript, t.Answered, t.Interrupted, milliseconds(t.FirstAudio), milliseconds(t.Length),
				t.Packets, t.Underruns, t.Dropped})
		}
		printSummary(out, []simrobot.Stats{s})
		return
	}
	w := out.to
	for i, t := range s.Turns {
		if t.Interrupted {
			fmt.Fprintf(w, "turn %d: interrupted, silent after %v\n", i+1, roundMS(t.QuietAfter))
			continue
		}
		if !t.Answered {
			fmt.Fprintf(w, "turn %d: %q was not answered\n", i+1, t.Text)
			continue
		}
		fmt.Fprintf(w, "turn %d: first sound after %v, %v long, %d packets, %d underruns, %d dropped\n",
			i+1, roundMS(t.FirstAudio), roundMS(t.Length), t.Packets, t.Underruns, t.Dropped)
	}
	if s.HelloLatency == 0 {
		return
	}
	fmt.Fprintf(w, "sound: %d sent, %d received, %d played, %d dropped, %d ignored, %d cut, %d bad, %d underruns, at most %d queued, gaps p50 %v "+
		"p99 %v\n",
		s.Sent, s.Received, s.Played, s.Dropped, s.Ignored, s.Cut, s.Bad, s.Underruns, s.MaxQueue,
		roundMS(simrobot.Quantile(s.Gaps, 0.5)), roundMS(simrobot.Quantile(s.Gaps, 0.99)))
	if s.CutByBargeIn+s.Late > 0 {
		fmt.Fprintf(w, "interruptions: %d queued packets were discarded, %d packets arrived late\n", s.CutByBargeIn, s.Late)
	}
}

// roundMS rounds a duration to milliseconds.
func roundMS(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// runMany runs several robots at once and prints a summary. The robots start 7 ms apart, so that
// their microphones do not all send packets at the same moments.
func runMany(ctx context.Context, f *robotFlags, out output) error {
	stats := make([]simrobot.Stats, f.robots)
	errs := make([]error, f.robots)
	var wg sync.WaitGroup
	for i := range f.robots {
		wg.Go(func() {
			o := f.options
			o.MAC, o.Say = macAfter(o.MAC, i), f.spoken[i]
			stats[i], errs[i] = runDelayed(ctx, o, time.Duration(i)*7*time.Millisecond)
		})
	}
	wg.Wait()
	printSummary(out, stats)
	if errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil }); len(errs) > 0 {
		return fmt.Errorf("%d of %d robots failed, the first because of: %w", len(errs), f.robots, errs[0])
	}
	return nil
}

// runDelayed runs one robot after a delay.
func runDelayed(ctx context.Context, o simrobot.Options, delay time.Duration) (simrobot.Stats, error) {
	r, err := simrobot.New(o)
	if err != nil {
		return simrobot.Stats{}, err
	}
	select {
	case <-ctx.Done():
		return simrobot.Stats{}, ctx.Err()
	case <-time.After(delay):
	}
	err = ignoreInterruption(ctx, o, r, r.Run(ctx))
	return r.Stats(), err
}

// ignoreInterruption returns err, the result of a conversation. It returns nil instead if err
// is the expected interruption of a robot that stays connected, and all turns were answered.
func ignoreInterruption(ctx context.Context, o simrobot.Options, r *simrobot.Robot, err error) error {
	if (o.Stay || o.Asleep) && ctx.Err() != nil && errors.Is(err, ctx.Err()) && countAnswered(r.Stats()) == len(o.Say) {
		return nil
	}
	return err
}

// macAfter returns the MAC address that is greater by n than mac, a valid MAC address.
func macAfter(mac string, n int) string {
	id, _ := device.ParseID(mac)
	first, _ := strconv.ParseUint(string(id), 16, 64) // cannot fail: an ID consists of hexadecimal digits
	return fmt.Sprintf("%012x", (first+uint64(n))&0xffffffffffff)
}

// printSummary prints the added-up counters of all robots.
func printSummary(out output, stats []simrobot.Stats) {
	var sum simrobot.Stats
	var hello, firstSound []time.Duration
	for _, s := range stats {
		sum.Received += s.Received
		sum.Played += s.Played
		sum.Dropped += s.Dropped
		sum.Ignored += s.Ignored
		sum.Underruns += s.Underruns
		sum.Gaps = append(sum.Gaps, s.Gaps...)
		hello = append(hello, s.HelloLatency)
		for _, t := range s.Turns {
			if t.Answered {
				firstSound = append(firstSound, t.FirstAudio)
			}
		}
		sum.Turns = append(sum.Turns, s.Turns...)
	}
	if out.json {
		p := func(d []time.Duration, q float64) float64 { return milliseconds(simrobot.Quantile(d, q)) }
		out.object(jsonSummary{len(stats), len(sum.Turns), len(firstSound), sum.Received, sum.Played, sum.Dropped, sum.Ignored, sum.Underruns,
			p(hello, 0.5), p(hello, 0.99), p(firstSound, 0.5), p(firstSound, 0.99), p(sum.Gaps, 0.5), p(sum.Gaps, 0.99)})
		return
	}
	w := out.to
	fmt.Fprintf(w, "%d robots: %d of %d turns answered\n", len(stats), len(firstSound), len(sum.Turns))
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{{"hello", hello}, {"first sound", firstSound}, {"gaps", sum.Gaps}} {
		fmt.Fprintf(w, "  %-11s p50 %v, p99 %v\n", row.name, simrobot.Quantile(row.times, 0.5).Round(100*time.Microsecond),
			simrobot.Quantile(row.times, 0.99).Round(100*time.Microsecond))
	}
	fmt.Fprintf(w, "  sound       %d received, %d played, %d dropped, %d ignored, %d underruns\n",
		sum.Received, sum.Played, sum.Dropped, sum.Ignored, sum.Underruns)
}
