package device_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
)

func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lanes device.Lanes
		began := time.Now()
		var mu sync.Mutex
		var done []string
		note := func(name string, takes time.Duration) device.Job {
			return device.Job{Do: func(context.Context) {
				time.Sleep(takes)
				mu.Lock()
				defer mu.Unlock()
				done = append(done, fmt.Sprint(name, " ", time.Since(began)))
			}}
		}
		ctx, cancel := context.WithCancel(t.Context())
		lanes.Add(ctx, "slow", note("a", time.Minute)) // a robot that does not respond for a minute
		lanes.Add(ctx, "other", note("b", time.Second))
		lanes.Add(ctx, "other", note("c", time.Second))
		named := note("read", time.Second)
		named.Name = "read"
		for range 3 { // one job runs, one waits, and the third is not queued
			lanes.Add(ctx, "third", named)
		}
		synctest.Wait()
		lanes.Add(t.Context(), "slow", note("d", time.Second))
		lanes.Add(ctx, "slow", note("nobody waits for it", time.Second))
		time.Sleep(30 * time.Second)
		cancel()
		lanes.Wait()
		slices.Sort(done)
		if want := []string{"a 1m0s", "b 1s", "c 2s", "d 1m1s", "read 1s", "read 2s"}; !slices.Equal(done, want) {
			t.Errorf("done %v, want %v", done, want)
		}
	})
}

func TestALaneIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lanes device.Lanes
		done := 0
		job := device.Job{Do: func(context.Context) {
			time.Sleep(time.Second)
			done++
		}}
		taken := 0
		for range 100 {
			if lanes.Add(t.Context(), "a", job) {
				taken++
			}
		}
		if !lanes.Add(t.Context(), "b", device.Job{Do: func(context.Context) {}}) {
			t.Error("another robot has no slot")
		}
		lanes.Wait()
		if taken != 32 || done != 32 {
			t.Errorf("%d taken, %d done", taken, done)
		}
		if !lanes.Add(t.Context(), "a", job) {
			t.Error("there is no slot afterwards")
		}
		lanes.Wait()
	})
}
