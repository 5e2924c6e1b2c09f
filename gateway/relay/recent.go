package relay

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"perch/agent/feed"
)

// recent are the latest ids of what a program has been told for good. A new connection
// begins with the notifications that nobody has shown: those among them are not told
// again.
type recent struct{ ids []string }

const mostRecent = 256

// idOf is the id of a frame: again the same when it is sent again.
func idOf(f *feed.Frame) string {
	sum := sha256.Sum256(f.Data)
	return hex.EncodeToString(sum[:16])
}

func (r *recent) has(id string) bool { return slices.Contains(r.ids, id) }

func (r *recent) add(id string) {
	r.ids = append(r.ids, id)
	r.ids = r.ids[max(0, len(r.ids)-mostRecent):]
}
