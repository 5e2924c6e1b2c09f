package child_test

import (
	"slices"
	"testing"

	"perch/child"
)

func TestEnviron(t *testing.T) {
	got := child.Environ([]string{"PATH=/bin", "PERCH_TOKEN=x", "SUPERVISOR_TOKEN=x", "SUPERVISOR_API=http://x", "HASSIO_TOKEN=x",
		"LISTEN_FDS=1", "WATCHDOG_USEC=1", "NOTIFY_SOCKET=/x", "VTUBER_AUTH_KEY=x", "PERCHED=1", "SUPERVISORS=1"})
	if want := []string{"PATH=/bin", "PERCHED=1", "SUPERVISORS=1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// The result must not be nil: os/exec would then pass on the whole environment of this process.
	if got := child.Environ([]string{"HASSIO_TOKEN=x"}); got == nil || len(got) != 0 {
		t.Errorf("%#v", got)
	}
}
