package mdns

import "testing"

func TestHostName(t *testing.T) {
	for n, want := range map[int]string{1: "perch.local", 2: "perch-2.local", 15: "perch-15.local"} {
		if got := hostName("Perch", n); got != want {
			t.Errorf("choice %d: %s, want %s", n, got, want)
		}
	}
}

func TestStatusBeforeRun(t *testing.T) {
	got := New(Options{Name: "perch", ID: "c0ffee"}).Status()
	if got.Host != "perch.local" || got.Renamed() || got.By != "" || got.Reason == nil || got.Reason.Error() != "not started" {
		t.Errorf("status %+v", got)
	}
}
