package relay

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"perch/gateway/avatar/feed"
)

// recent holds the ids of the latest notifications that were delivered to a program, so that a
// new connection does not repeat them.
type recent struct{ ids []string }

const mostRecent = 256

// idOf returns the id of a frame. It stays the same when the frame is sent again.
func idOf(f *feed.Frame) string {
	sum := sha256.Sum256(f.Data)
	return hex.EncodeToString(sum[:16])
}

func (r *recent) has(id string) bool { return slices.Contains(r.ids, id) }

func (r *recent) add(id string) {
	r.ids = append(r.ids, id)
	r.ids = r.ids[max(0, len(r.ids)-mostRecent):]
}
