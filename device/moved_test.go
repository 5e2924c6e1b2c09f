package device_test

import (
	"errors"
	"testing"
	"time"

	"perch/device"
)

// TestAClockThatJumps: a robot that came a minute before the clock was set
// came a minute ago, and one of an earlier run at its recorded time. Tokens and codes
// are none of the clock's business.
func TestAClockThatJumps(t *testing.T) {
	const earlier, here = device.ID("a0b1c2d3e4f4"), device.ID("a0b1c2d3e4f5")
	for name, by := range map[string]time.Duration{"five years on": 5 * 365 * 24 * time.Hour, "a day back": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			kept := newTable()
			device.NewRegistry(device.Key("key"), device.AdoptOpen, kept).CheckIn(from(earlier, "c4"), noon.Add(-time.Hour))
			r := device.NewRegistry(device.Key("key"), device.AdoptOpen, kept)
			_, admission := r.CheckIn(from(here, "c5"), noon)
			r.Moved(by)
			now := noon.Add(by).Add(time.Minute)

			for id, ago := range map[device.ID]time.Duration{here: time.Minute, earlier: by + time.Hour + time.Minute} {
				for when, read := range map[string]*device.Registry{"at once": r, "after a restart": device.NewRegistry(device.Key("key"),
					device.AdoptOpen, kept)} {
					robot, err := read.Get(id)
					if err != nil || now.Sub(robot.LastSeen) != ago || now.Sub(robot.FirstSeen) != ago || now.Sub(robot.Booted) != ago {
						t.Errorf("%s, %s was seen %s ago, first %s, booted %s, want %s; %v", when, id,
							now.Sub(robot.LastSeen), now.Sub(robot.FirstSeen), now.Sub(robot.Booted), ago, err)
					}
				}
			}
			if _, err := r.Admit(here, device.NewClient("c5"), admission.Token); err != nil {
				t.Errorf("its token: %v", err)
			}
			kept.writes()
			r.Seen(earlier, now)
			if kept.writes() != 1 {
				t.Error("a visit by the clock as it is now is not kept")
			}
			if err := r.Forget(here); err != nil {
				t.Fatal(err)
			}
			r.Moved(by)
			if _, err := r.Get(here); !errors.Is(err, device.ErrUnknownRobot) {
				t.Errorf("who was forgotten is back: %v", err)
			}
		})
	}
}
