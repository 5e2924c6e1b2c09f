package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"perch/device"
	"perch/firmware-tools/simrobot"
)

// load runs many robots at once. They start 7 ms apart, so that their
// microphones are not in step.
func load(ctx context.Context, f *robotFlags, out lines) error {
	first, err := device.ParseID(f.options.MAC)
	if err != nil {
		return err
	}
	all := make([]simrobot.Stats, f.robots)
	failed := make([]error, f.robots)
	var wg sync.WaitGroup
	for i := range f.robots {
		wg.Go(func() {
			all[i], failed[i] = loadOne(ctx, f.options, macAfter(first, i), time.Duration(i)*7*time.Millisecond)
		})
	}
	wg.Wait()
	summary(out, all)
	wrong := 0
	for _, err := range failed {
		if err != nil {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d robots failed, the first because of: %w", wrong, f.robots, firstOf(failed))
	}
	return nil
}

func loadOne(ctx context.Context, o simrobot.Options, mac string, after time.Duration) (simrobot.Stats, error) {
	o.MAC = mac
	r, err := simrobot.New(o)
	if err != nil {
		return simrobot.Stats{}, err
	}
	select {
	case <-ctx.Done():
		return simrobot.Stats{}, ctx.Err()
	case <-time.After(after):
	}
	err = r.Run(ctx)
	if o.Stay && ctx.Err() != nil && errors.Is(err, ctx.Err()) && answered(r.Stats()) == len(o.Say) {
		err = nil
	}
	return r.Stats(), err
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// macAfter counts a MAC up by n.
func macAfter(id device.ID, n int) string {
	b, err := hex.DecodeString("0000" + string(id))
	if err != nil {
		return string(id) // an ID is hex
	}
	sum := binary.BigEndian.Uint64(b) + uint64(n)
	return fmt.Sprintf("%012x", sum&0xffffffffffff)
}

// summary prints the sums of what the robots counted.
func summary(out lines, all []simrobot.Stats) {
	var sum simrobot.Stats
	var hello, firstSound []time.Duration
	n := 0
	for _, s := range all {
		sum.Received += s.Received
		sum.Played += s.Played
		sum.Dropped += s.Dropped
		sum.Ignored += s.Ignored
		sum.Underruns += s.Underruns
		sum.Gaps = append(sum.Gaps, s.Gaps...)
		hello = append(hello, s.HelloLatency)
		n += answered(s)
		for _, t := range s.Turns {
			if t.Answered {
				firstSound = append(firstSound, t.FirstAudio)
			}
		}
		sum.Turns = append(sum.Turns, s.Turns...)
	}
	if out.json {
		p := func(d []time.Duration, q float64) float64 { return milliseconds(simrobot.Quantile(d, q)) }
		out.object(shownSound{len(all), len(sum.Turns), n, sum.Received, sum.Played, sum.Dropped, sum.Ignored, sum.Underruns,
			p(hello, 0.5), p(hello, 0.99), p(firstSound, 0.5), p(firstSound, 0.99), p(sum.Gaps, 0.5), p(sum.Gaps, 0.99)})
		return
	}
	w := out.to
	fmt.Fprintf(w, "%d robots: %d of %d turns answered\n", len(all), n, len(sum.Turns))
	for _, d := range []struct {
		name string
		d    []time.Duration
	}{{"hello", hello}, {"first sound", firstSound}, {"gaps", sum.Gaps}} {
		fmt.Fprintf(w, "  %-11s p50 %v, p99 %v\n", d.name, simrobot.Quantile(d.d, 0.5).Round(100*time.Microsecond),
			simrobot.Quantile(d.d, 0.99).Round(100*time.Microsecond))
	}
	fmt.Fprintf(w, "  sound       %d received, %d played, %d dropped, %d ignored, %d underruns\n",
		sum.Received, sum.Played, sum.Dropped, sum.Ignored, sum.Underruns)
}
