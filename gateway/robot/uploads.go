package robot

import (
	"net/http"
	"sync"
	"time"

	"perch/device"
	"perch/gateway/door"
)

// How many pictures may be on their way at a time. A robot's camera waits for
// the answer to one before it takes another.
const (
	mostUploads = 4
	// mostOfStrangers of them are of robots that nobody has adopted, so that those
	// do not keep out the others.
	mostOfStrangers = 2
	// uploadWithin is how long one may take to arrive: 4 MB over a Wi-Fi of
	// 2 Mbit/s, of which a robot sends a hundredth.
	uploadWithin = 15 * time.Second
)

// Errors of an upload that is not taken.
var (
	errOneAtATime = &door.Fault{Word: "one_at_a_time", HTTP: http.StatusTooManyRequests,
		Sentence: "this robot's last picture is still being looked at; send the next one after the answer"}
	errTooManyUploads = &door.Fault{Word: "too_many_pictures", HTTP: http.StatusServiceUnavailable,
		Sentence: "too many pictures are being looked at; try again in a moment"}
	errSlowUpload = &door.Fault{Word: "too_slow", HTTP: http.StatusRequestTimeout,
		Sentence: "the picture did not arrive within " + uploadWithin.String() + "; send a smaller one, or look at the network"}
)

// uploads are the pictures on their way, from before their first byte is read
// until they were looked at.
type uploads struct {
	mu sync.Mutex
	of map[device.ID]bool // whether it is of a stranger
}

// reserve takes a slot for a robot's picture. leave gives it back.
func (u *uploads) reserve(id device.ID, stranger bool) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, one := u.of[id]; one {
		return nil, errOneAtATime
	}
	strangers := 0
	for _, is := range u.of {
		if is {
			strangers++
		}
	}
	if len(u.of) >= mostUploads || stranger && strangers >= mostOfStrangers {
		return nil, errTooManyUploads
	}
	u.of[id] = stranger
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.of, id)
	}, nil
}
