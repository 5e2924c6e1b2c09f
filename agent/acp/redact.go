package acp

import (
	"strings"

	"perch/device"
	"perch/remote"
)

// redacted blanks what looks like a key, and the values that the agent's own
// environment was given, and cuts a text to so many bytes.
func (b *Brain) redacted(s string, most int) string {
	s = device.Clip(s, 4*most)
	for _, entry := range b.o.Env {
		if _, value, _ := strings.Cut(entry, "="); len(value) >= 8 {
			s = strings.ReplaceAll(s, value, "***")
		}
	}
	return remote.Redact(s, most)
}
