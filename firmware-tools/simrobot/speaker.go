package simrobot

import "time"

// speaker is the robot's speaker. It passes the player's sound on to Options.Play, to the echo
// and to the recording.
type speaker struct {
	output func(rate int, pcm []int16) // Options.Play; may be nil
	echo   *echo                       // nil if the microphone hears no echo
	stamps *stamps                     // nil if the microphone's packets have no timestamps

	records bool      // record the sound in pcm
	rate    int       // sample rate of the recording in Hz; 0 until the first sound
	start   time.Time // time of the first sound
	pcm     []int16
}

// maxRecording is the maximum length of a recording in samples: half an hour at 24 kHz.
const maxRecording = 30 * 60 * 24000

// play plays a frame, starting at the given time. rate is in Hz. A recording fills the gap since the
// previous frame with silence. It omits frames whose rate differs from the first frame's rate, and frames
// that start after maxRecording.
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
	// A gap of one sample is a rounding error.
	offset := int(at.Sub(s.start).Seconds()*float64(s.rate) + 0.5)
	if rate != s.rate || offset > maxRecording {
		return
	}
	if silence := offset - len(s.pcm); silence > 1 {
		s.pcm = append(s.pcm, make([]int16, silence)...)
	}
	s.pcm = append(s.pcm, f.pcm...)
}
