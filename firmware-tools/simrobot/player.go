package simrobot

import (
	"slices"
	"time"

	"perch/device/xiaozhi"
	"perch/voice"
)

// player plays the packets of sound from the server. It holds a queue of packets, a few decoded
// frames, and the frame being played. Its methods take the current time as an argument.
type player struct {
	stats   *Stats
	out     *speaker
	ready   int // maximum number of decoded frames
	size    int // maximum number of queued packets
	params  xiaozhi.AudioParams
	frame   time.Duration  // duration of a frame, from params
	decoder *voice.Decoder // nil if packets are only counted

	queue   []xiaozhi.Audio
	decoded []frame
	until   time.Time // end of the frame being played
	playing bool
	speech  bool   // a frame was played since the queue was last emptied
	reached uint32 // timestamp of the latest played packet
}

// frame is a decoded packet.
type frame struct {
	pcm   []int16
	stamp uint32 // timestamp
}

// open prepares for the server's sound. It returns a Crash if the firmware has no decoder for
// the parameters.
func (p *player) open(a xiaozhi.AudioParams) error {
	if !slices.Contains([]int{5, 10, 20, 40, 60, 80, 100, 120}, a.FrameDuration) {
		return crash("hello with a frame_duration of %d ms, which the robot cannot decode", a.FrameDuration)
	}
	if !slices.Contains([]int{8000, 12000, 16000, 24000, 48000}, a.SampleRate) {
		return crash("hello with a sample_rate of %d Hz, which Opus does not support", a.SampleRate)
	}
	if p.params == a {
		return nil
	}
	p.params, p.frame = a, time.Duration(a.FrameDuration)*time.Millisecond
	if out := p.out; !out.records && out.output == nil && out.echo == nil { // packets need not be decoded
		return nil
	}
	var err error
	p.decoder, err = voice.NewDecoder(a.SampleRate)
	return err
}

// push queues a packet, or drops it if the queue is full.
func (p *player) push(now time.Time, packet xiaozhi.Audio) {
	p.advance(now)
	if len(p.queue) >= p.size {
		p.stats.Dropped++
		return
	}
	if p.speech && !p.playing && now.After(p.until) {
		p.stats.Underruns++
	}
	p.queue = append(p.queue, packet)
	p.advance(now)
	p.stats.MaxQueue = max(p.stats.MaxQueue, len(p.queue))
}

// advance plays the sound that is due by now.
func (p *player) advance(now time.Time) {
	for {
		p.decode()
		if p.playing && now.Before(p.until) {
			return
		}
		if len(p.decoded) == 0 {
			p.playing = false
			return
		}
		start := p.until
		if !p.playing {
			start = now
		}
		p.out.play(start, p.params.SampleRate, p.decoded[0])
		p.reached = p.decoded[0].stamp
		p.decoded = p.decoded[1:]
		p.stats.Played++
		p.until, p.playing, p.speech = start.Add(p.frame), true, true
	}
}

// decode fills the decoded frames from the queue. It drops invalid packets, and packets that
// are longer than the frame duration in the hello.
func (p *player) decode() {
	for len(p.queue) > 0 && len(p.decoded) < p.ready {
		packet := p.queue[0]
		p.queue = p.queue[1:]
		if p.decoder == nil {
			p.decoded = append(p.decoded, frame{stamp: packet.Timestamp})
			continue
		}
		pcm, err := p.decoder.Decode(packet.Opus)
		if err != nil || len(pcm) > p.params.SampleRate*p.params.FrameDuration/1000 {
			p.stats.Bad++
			continue
		}
		p.decoded = append(p.decoded, frame{append([]int16(nil), pcm...), packet.Timestamp})
	}
}

// reset drops the queue, the decoded frames and the timestamps of played packets, but not the frame
// being played. It returns the number of dropped packets.
func (p *player) reset() int {
	n := len(p.queue) + len(p.decoded)
	if p.out.stamps != nil {
		*p.out.stamps = nil
	}
	p.queue, p.decoded, p.speech = nil, nil, false
	return n
}

// isDrained reports whether nothing is queued. The last frame may still be playing.
func (p *player) isDrained() bool { return len(p.queue) == 0 && len(p.decoded) == 0 }

// isSilent reports whether the last frame has been played to its end.
func (p *player) isSilent() bool { return p.isDrained() && !p.playing }

// finish plays the queue to its end, without waiting.
func (p *player) finish() {
	for !p.isSilent() {
		p.advance(p.until)
	}
}

// nextAdvance returns the time of the next call of advance, or the zero time if nothing is
// playing.
func (p *player) nextAdvance() time.Time {
	if !p.playing {
		return time.Time{}
	}
	return p.until
}
