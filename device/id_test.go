package device_test

import (
	"errors"
	"strings"
	"testing"

	"perch/device"
)

func TestParseIDTakesEverySpelling(t *testing.T) {
	for _, s := range []string{
		"a0:b1:c2:d3:e4:f5", "A0:B1:C2:D3:E4:F5", "a0-b1-c2-d3-e4-f5", "a0b1.c2d3.e4f5", "a0b1c2d3e4f5", "A0B1C2d3e4f5",
	} {
		if id, err := device.ParseID(s); id != "a0b1c2d3e4f5" || err != nil {
			t.Errorf("%q is %q (%v)", s, id, err)
		}
	}
	for what, s := range map[string]string{
		"locally administered": "02:00:00:00:00:01",
		"group":                "01:00:5e:00:00:fb", // a multicast address, as half of the random ones of web clients are
		"last but one":         "ff:ff:ff:ff:ff:fe",
	} {
		if id, err := device.ParseID(s); id != device.ID(strings.ReplaceAll(s, ":", "")) || err != nil {
			t.Errorf("a %s address is %q (%v)", what, id, err)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	for name, s := range map[string]string{
		"nothing":          "",
		"too short":        "a0:b1:c2:d3:e4",
		"too long":         "a0:b1:c2:d3:e4:f5:06",
		"no hex":           "g0:b1:c2:d3:e4:f5",
		"a name":           "stack-chan",
		"a space":          "a0 b1 c2 d3 e4 f5",
		"a line end":       "a0:b1:c2:d3:e4:f5\n",
		"a path":           "a0b1c2d3e4/5",
		"a zero byte":      "a0b1c2d3e4f5\x00",
		"high bit letters": "\xc1\xc2a0b1c2d3e4",
		"empty":            "00:00:00:00:00:00",
		"broadcast":        "ff:ff:ff:ff:ff:ff",
		"endless":          "a0b1c2d3e4f5" + strings.Repeat(":", 1<<20),
	} {
		if id, err := device.ParseID(s); !errors.Is(err, device.ErrID) || id != "" {
			t.Errorf("%s: %q (%v), want ErrID", name, id, err)
		} else if len(err.Error()) > 200 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

func TestMACIsWhatTheFirmwareWrites(t *testing.T) {
	if mac := device.ID("a0b1c2d3e4f5").MAC(); mac != "a0:b1:c2:d3:e4:f5" {
		t.Errorf("MAC is %q", mac)
	}
	if mac := device.ID("").MAC(); mac != "" {
		t.Errorf("the MAC of no robot is %q", mac)
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"a0:b1:c2:d3:e4:f5", "A0-B1-C2-D3-E4-F5", "", "00", "ff:ff:ff:ff:ff:ff", "a0b1c2d3e4f5ff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := device.ParseID(s)
		if err != nil {
			if !errors.Is(err, device.ErrID) || id != "" {
				t.Fatalf("%q: %q and %v", s, id, err)
			}
			return
		}
		if len(id) != 12 || strings.Trim(string(id), "0123456789abcdef") != "" {
			t.Fatalf("%q gives the id %q", s, id)
		}
		for _, again := range []string{string(id), id.MAC(), strings.ToUpper(s)} {
			if same, err := device.ParseID(again); same != id || err != nil {
				t.Fatalf("%q is %q, but %q is %q (%v)", s, id, again, same, err)
			}
		}
	})
}
