package voice

// Sizes of the sound of our speech that is stored. It lasts 3.8 s, more than enough, since
// packets are sent at most a second before they are played.
const (
	echoPackets = 64
	echoSamples = echoPackets * MicFrame
	echoHops    = echoSamples / echoStep // number of steps
)

// reference is the sound of our packets at MicRate, without gaps. A position is a number of
// samples since the start of the first packet. Sound that is no longer stored, or not sent
// yet, counts as silence.
type reference struct {
	decoder    *Decoder
	analyser   *analyser
	stamps     [echoPackets]uint32  // stamp of each packet in pcm
	pcm        [echoSamples]int16   // ring of the latest packets; position n is at n%echoSamples
	stepLevels [echoHops]bandLevels // levels of each step of pcm
	packets    int64                // number of packets added or skipped
}

func newReference() (*reference, error) {
	d, err := NewDecoder(MicRate)
	if err != nil {
		return nil, err
	}
	return &reference{decoder: d, analyser: newAnalyser()}, nil
}

// addPacket decodes and appends a packet. A packet that cannot be decoded counts as silence,
// as it does on the robot. Sound that is not 60 ms long is cut or padded, since the positions
// depend on it.
func (r *reference) addPacket(stamp uint32, packet []byte) {
	out, _ := r.decoder.Decode(packet)
	at := r.packets % echoPackets
	r.packets++
	r.stamps[at] = stamp
	pcm := r.pcm[at*MicFrame:][:MicFrame]
	clear(pcm[copy(pcm, out):])
	for i := range MicFrame / echoStep {
		step := (*[echoStep]int16)(pcm[i*echoStep:])
		r.stepLevels[int(at)*MicFrame/echoStep+i], _ = r.analyser.step(step, step)
	}
}

// skipPackets appends n silent packets without stamps.
func (r *reference) skipPackets(n int64) {
	r.packets += max(0, n-echoPackets)
	for range min(n, echoPackets) {
		at := r.packets % echoPackets
		r.packets++
		r.stamps[at] = 0
		clear(r.pcm[at*MicFrame:][:MicFrame])
		clear(r.stepLevels[at*MicFrame/echoStep:][:MicFrame/echoStep])
	}
}

// positionOf returns the position of the latest packet with this stamp, and whether one is
// stored.
func (r *reference) positionOf(stamp uint32) (at int64, known bool) {
	for i := r.packets - 1; i >= max(0, r.packets-echoPackets); i-- {
		if r.stamps[i%echoPackets] == stamp {
			return i * MicFrame, true
		}
	}
	return 0, false
}

// endPosition returns the position of the end of the last packet.
func (r *reference) endPosition() int64 { return r.packets * MicFrame }

// copySound fills out with the sound from a position on.
func (r *reference) copySound(at int64, out []int16) {
	for i := range out {
		out[i] = 0
		if p := at + int64(i); r.isStored(p) {
			out[i] = r.pcm[p%echoSamples]
		}
	}
}

// isStored reports whether the sound at a position is stored.
func (r *reference) isStored(at int64) bool {
	return at >= max(0, r.endPosition()-echoSamples) && at < r.endPosition()
}

// raiseLevels raises each level in l to the maximum level of the steps between two positions,
// multiplied by factor.
func (r *reference) raiseLevels(l *bandLevels, from, to int64, factor float32) {
	for hop := from / echoStep; hop <= to/echoStep; hop++ {
		if !r.isStored(hop * echoStep) {
			continue
		}
		for b, v := range &r.stepLevels[hop%echoHops] {
			l[b] = max(l[b], v*factor)
		}
	}
}
