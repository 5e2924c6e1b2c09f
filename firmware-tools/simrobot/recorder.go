package simrobot

import "time"

// recorder records the sound of the speaker.
type recorder struct {
	on    bool
	heard func(rate int, pcm []int16) // nil: not needed
	rate  int                         // of the first sound; 0 before it
	start time.Time
	pcm   []int16
}

// mostRecorded bounds a recording: half an hour at 24 kHz.
const mostRecorded = 30 * 60 * 24000

// play records sound that begins at a time, after silence.
func (r *recorder) play(at time.Time, rate int, pcm []int16) {
	if r.heard != nil {
		r.heard(rate, pcm)
	}
	if !r.on {
		return
	}
	if r.rate == 0 {
		r.rate, r.start = rate, at
	}
	// The times come from a clock that counts frames, so that rounding to
	// samples is the only error: less than one is no gap.
	offset := int(at.Sub(r.start).Seconds()*float64(r.rate) + 0.5)
	if rate != r.rate || offset > mostRecorded {
		return
	}
	if silence := offset - len(r.pcm); silence > 1 {
		r.pcm = append(r.pcm, make([]int16, silence)...)
	}
	r.pcm = append(r.pcm, pcm...)
}
