package voice

// echoPackets is how many of our packets are stored: 3.8 s, while the pacer stays at
// most a second ahead of the robot.
const (
	echoPackets = 64
	echoSamples = echoPackets * MicFrame
	echoHops    = echoSamples / echoStep
)

// reference is the sound that the robot's loudspeaker was given, at the microphone's
// rate and without gaps. Positions count samples from the first packet; sound older than
// echoPackets, or still to come, is silent.
type reference struct {
	decoder  *Decoder
	analyser *analyser
	stamps   [echoPackets]uint32
	pcm      [echoSamples]int16
	hops     [echoHops]levels // of every step of pcm
	packets  int64
}

func newReference() (*reference, error) {
	d, err := NewDecoder(MicRate)
	if err != nil {
		return nil, err
	}
	return &reference{decoder: d, analyser: newAnalyser()}, nil
}

// add appends a packet. An undecodable packet was silence on the robot too. A packet of
// another length is cut or padded, so that positions hold.
func (r *reference) add(stamp uint32, packet []byte) {
	out, _ := r.decoder.Decode(packet)
	at := r.packets % echoPackets
	r.packets++
	r.stamps[at] = stamp
	pcm := r.pcm[at*MicFrame:][:MicFrame]
	clear(pcm[copy(pcm, out):])
	for i := range MicFrame / echoStep {
		step := (*[echoStep]int16)(pcm[i*echoStep:])
		r.hops[int(at)*MicFrame/echoStep+i], _ = r.analyser.step(step, step)
	}
}

// skip appends n unknown packets.
func (r *reference) skip(n int64) {
	r.packets += max(0, n-echoPackets)
	for range min(n, echoPackets) {
		at := r.packets % echoPackets
		r.packets++
		r.stamps[at] = 0
		clear(r.pcm[at*MicFrame:][:MicFrame])
		clear(r.hops[at*MicFrame/echoStep:][:MicFrame/echoStep])
	}
}

// positionOf returns the position of the packet that was sent with a stamp.
func (r *reference) positionOf(stamp uint32) (at int64, known bool) {
	for i := r.packets - 1; i >= max(0, r.packets-echoPackets); i-- {
		if r.stamps[i%echoPackets] == stamp {
			return i * MicFrame, true
		}
	}
	return 0, false
}

// endPosition returns the position after the last packet.
func (r *reference) endPosition() int64 { return r.packets * MicFrame }

// read fills to with the sound starting at a position.
func (r *reference) read(at int64, to []int16) {
	for i := range to {
		to[i] = 0
		if p := at + int64(i); r.audible(p) {
			to[i] = r.pcm[p%echoSamples]
		}
	}
}

func (r *reference) audible(at int64) bool {
	return at >= max(0, r.endPosition()-echoSamples) && at < r.endPosition()
}

// loudest raises l to the levels of the steps between from and to, weakened by a factor.
func (r *reference) loudest(l *levels, from, to int64, weaker float32) {
	for hop := from / echoStep; hop <= to/echoStep; hop++ {
		if !r.audible(hop * echoStep) {
			continue
		}
		for b, v := range &r.hops[hop%echoHops] {
			l[b] = max(l[b], v*weaker)
		}
	}
}
