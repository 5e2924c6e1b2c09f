package simrobot

import "time"

// speaker passes the player's sound to the room and to a recording.
type speaker struct {
	output func(rate int, pcm []int16) // may be nil
	echo   *echo                       // nil without an echo
	stamps *stamps                     // nil if packets are sent without timestamps

	records bool // records
	rate    int  // of the first sound recorded; 0 before it
	start   time.Time
	pcm     []int16
}

// mostRecorded bounds a recording: half an hour at 24 kHz.
const mostRecorded = 30 * 60 * 24000

// play plays a frame that starts at the given time. Before it the speaker was silent.
func (s *speaker) play(at time.Time, rate int, f frame) {
	if s.output != nil {
		s.output(rate, f.pcm)
	}
	if s.echo != nil {
		s.echo.play(at, rate, f.pcm)
	}
	if s.stamps != nil {
		s.stamps.played(f.stamp)
	}
	if !s.records {
		return
	}
	if s.rate == 0 {
		s.rate, s.start = rate, at
	}
	// The clock counts frames, so that a gap of a sample is a rounding error.
	offset := int(at.Sub(s.start).Seconds()*float64(s.rate) + 0.5)
	if rate != s.rate || offset > mostRecorded {
		return
	}
	if silence := offset - len(s.pcm); silence > 1 {
		s.pcm = append(s.pcm, make([]int16, silence)...)
	}
	s.pcm = append(s.pcm, f.pcm...)
}
