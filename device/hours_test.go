package device_test

import (
	"errors"
	"testing"
	"time"

	"perch/device"
	"perch/must"
)

func TestHours(t *testing.T) {
	at := func(clock string) time.Time {
		parsed := must.Value(time.Parse("15:04:05", clock))(t)
		return parsed
	}
	for written, c := range map[string]struct{ in, out []string }{
		"":            {nil, []string{"00:00:00", "12:00:00"}},
		"06:00-21:00": {[]string{"06:00:00", "20:59:59"}, []string{"05:59:59", "21:00:00", "00:00:00"}},
		"22:00-07:30": {[]string{"22:00:00", "00:00:00", "07:29:59"}, []string{"07:30:00", "21:59:59"}},
		"00:00-24:00": {[]string{"00:00:00", "23:59:59"}, nil},
		"18:00-24:00": {[]string{"18:00:00", "23:59:59"}, []string{"00:00:00", "17:59:59"}},
	} {
		h, err := device.ParseHours(written)
		if err != nil || h.String() != written {
			t.Errorf("%q is %q, %v", written, h, err)
		}
		for _, clock := range c.in {
			if !h.Contains(at(clock)) {
				t.Errorf("%s does not contain %s", written, clock)
			}
		}
		for _, clock := range c.out {
			if h.Contains(at(clock)) {
				t.Errorf("%s contains %s", written, clock)
			}
		}
	}
	for _, wrong := range []string{"22", "22:00", "22:00-", "-07:00", "25:00-07:00", "22:00-07:60", "7-9", "07:00-07:00", "24:00-07:00", "a-b",
		"22:00-07:00-08:00"} {
		if h, err := device.ParseHours(wrong); !errors.Is(err, device.ErrHours) {
			t.Errorf("%q is %v", wrong, h)
		}
	}
}
