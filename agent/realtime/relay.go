package realtime

import (
	"slices"
	"strings"

	"perch/limit"
)

// ahead is how much of an answer may wait for the robot, in bytes: about four minutes of sound.
const ahead = limit.Answer

// eventSize is about the size of a serverEvent, in bytes, without its texts.
const eventSize = 512

// received is an event of the server with the memory that it takes, in bytes.
type received struct {
	serverEvent
	size int
}

// relay passes on events while it receives more, until there are no more or over is closed. A robot plays slower than
// a server speaks, and the server's pings are only answered while its events are received. relay receives no more while
// ahead bytes wait. A transcript of the person's speech overtakes the events that wait.
func relay(in <-chan received, out chan<- serverEvent, over <-chan struct{}) {
	defer close(out)
	var waiting []received
	size := 0
	for in != nil || len(waiting) > 0 {
		var from <-chan received
		if size < ahead {
			from = in
		}
		var to chan<- serverEvent
		var first serverEvent
		if len(waiting) > 0 {
			to, first = out, waiting[0].serverEvent
		}
		select {
		case e, open := <-from:
			switch {
			case !open:
				in = nil
				continue
			case strings.HasPrefix(e.Type, "conversation.item.input_audio_transcription."):
				waiting = slices.Insert(waiting, 0, e)
			default:
				waiting = append(waiting, e)
			}
			size += e.size
		case to <- first:
			size -= waiting[0].size
			waiting[0] = received{} // frees its sound
			waiting = waiting[1:]
		case <-over:
			return
		}
	}
}
