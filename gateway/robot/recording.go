package robot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/robot/transcript"
)

// header returns the first lines of a recorded transcript. A replay of the transcript in a test needs them.
func (s *session) header() []string {
	return []string{
		transcript.Visible(fmt.Sprintf("Recorded from %s, firmware %s.", s.robot.Board, s.robot.Firmware), ""),
		"-- setup --", fmt.Sprintf("framing: %d", s.framing), "-- transcript --",
	}
}

// maxWaitingLines is how many lines may wait for the reader of a recording. If more wait, the
// recording ends, because the session must not wait for a slow reader.
const maxWaitingLines = 1000

// Errors of a recording.
var (
	// ErrLinesLost is returned by Record if lines were lost because out was too slow. If ctx has ended too,
	// it is joined with ctx.Err().
	ErrLinesLost = errors.New("the recording was ended because its lines were read too slowly")
	// ErrAlreadyRecorded is returned by Record if the session is already being recorded.
	ErrAlreadyRecorded = &httpserver.Fault{Word: "being_recorded", Sentence: "somebody else is recording this robot already", HTTP: http.StatusConflict}
)

// Record records a robot's open session from now until its end, or the robot's next session if none is
// open. It passes each line of the transcript to out. It returns nil when the session ends, an error that
// wraps ctx.Err() when ctx ends, ErrLinesLost if out was too slow, ErrAlreadyRecorded, the error of out, or
// ErrStopping if the server is closed before a session begins.
func (s *Server) Record(ctx context.Context, id device.ID, out func(line string) error) error {
	recorded, err := s.sessions.waitFor(ctx, id)
	if err != nil {
		return err
	}
	lines := make(chan transcript.Entry, maxWaitingLines)
	var lost atomic.Bool
	r := transcript.NewRecorder(recorded.id, time.Now(), func(e transcript.Entry) {
		select {
		case lines <- e:
		default:
			lost.Store(true)
		}
	})
	r.Live = true
	if !recorded.tap.Attach(r) {
		return ErrAlreadyRecorded
	}
	defer recorded.tap.Detach(r)
	for _, line := range recorded.header() {
		if err := out(line); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		s.options.Bus.Read().Each(ctx, func(e event.Envelope) {
			if e.Robot == id {
				r.AddEvent(e)
			}
		})
	})
	for {
		select {
		case e := <-lines:
			if err := out(e.String()); err != nil {
				return err
			}
			if lost.Load() {
				return ErrLinesLost
			}
		case <-recorded.done:
			recorded.tap.Detach(r)
			r.Finish(time.Now())
			return drain(lines, &lost, out)
		case <-ctx.Done():
			r.Finish(time.Now())
			return errors.Join(drain(lines, &lost, out), ctx.Err())
		}
	}
}

// drain passes the lines that wait in the channel to out. It returns ErrLinesLost if lines were lost.
func drain(lines <-chan transcript.Entry, lost *atomic.Bool, out func(string) error) error {
	for {
		select {
		case e := <-lines:
			if err := out(e.String()); err != nil {
				return err
			}
		default:
			if lost.Load() {
				return ErrLinesLost
			}
			return nil
		}
	}
}
