package robot

import (
	"context"
	"perch/gateway/robot/dialogue"
	"time"

	"perch/device/xiaozhi"
	"perch/voice"
)

// audioInput decodes a session's sound and finds utterances. A ring keeps the last
// 2 s, so that the beginning of an utterance is not lost.
type audioInput struct {
	decoder *voice.Decoder
	pointer *voice.EndPointer
	ring    []int16
	at      int // where the next sample goes
	filled  int
	speech  int         // samples kept since speech was found
	echo    *voice.Echo // nil where the robot cancels its echo itself
	nothing []int16     // silence
}

const ringSamples = 2 * voice.MicRate

// preRoll is how much of the ring belongs to an utterance: the 300 ms in
// which speech was found, and a little for its soft beginning.
const preRoll = 500 * time.Millisecond

func newAudioInput() (audioInput, error) {
	decoder, err := voice.NewDecoder(voice.MicRate)
	if err != nil {
		return audioInput{}, err
	}
	pointer, err := voice.NewEndPointer(voice.DefaultSilence)
	return audioInput{decoder: decoder, pointer: pointer}, err
}

// reset drops the sound so far: it was before this listen start.
func (e *audioInput) reset() {
	e.pointer.Reset()
	e.at, e.filled, e.speech = 0, 0, 0
}

// close releases what is not Go's.
func (e *audioInput) close() {
	if e.echo != nil {
		e.echo.Close()
	}
}

// clean removes our own voice from the microphone's sound. If nothing else is left
// it is silence, because a remainder of us must not enter an utterance.
func (e *audioInput) clean(stamp uint32, pcm []int16) (clean []int16, ours bool) {
	if e.echo == nil {
		return pcm, false
	}
	clean, ours = e.echo.Heard(stamp, pcm)
	if !ours {
		return clean, false
	}
	if len(e.nothing) < len(pcm) {
		e.nothing = make([]int16, len(pcm))
	}
	return e.nothing[:len(pcm)], true
}

// keep puts sound into the ring.
func (e *audioInput) keep(pcm []int16) {
	if e.ring == nil {
		e.ring = make([]int16, ringSamples)
	}
	for len(pcm) > 0 {
		n := copy(e.ring[e.at:], pcm)
		pcm = pcm[n:]
		e.at = (e.at + n) % len(e.ring)
		e.filled = min(e.filled+n, len(e.ring))
		if e.pointer.Speaking() {
			e.speech += n
		}
	}
}

// before gives write the sound just before now, oldest first: from a moment
// before speech was found, which in realtime may be while we still recognize.
func (e *audioInput) before(write func([]int16) bool) {
	n := min(e.filled, e.speech+int(preRoll/time.Millisecond)*voice.MicRate/1000)
	e.speech = 0
	from := e.at - n
	if from < 0 {
		write(e.ring[len(e.ring)+from:])
		from = 0
	}
	if from < e.at {
		write(e.ring[from:e.at])
	}
}

// audio takes a packet of the robot, into the present utterance or else the ring.
func (l *loop) audio(ctx context.Context, a xiaozhi.Audio) {
	if len(a.Opus) == 0 && !a.Lost {
		return
	}
	if l.muted.Load() {
		l.packet = dialogue.Packet{Duration: voice.FrameDuration, Muted: true}
		l.input(ctx, &l.packet)
		return
	}
	pcm, err := l.audioIn.decode(a)
	if err != nil {
		l.badAudio.warn(l.log, "the robot sent sound that does not decode; such packets are dropped", err)
		return
	}
	l.packet = dialogue.Packet{Duration: time.Duration(len(pcm)) * time.Second / voice.MicRate}
	l.input(ctx, &l.packet)
	pcm, ours := l.audioIn.clean(a.Timestamp, pcm)
	if l.state.Hearing() && l.utterance != nil {
		l.utterance.Write(pcm)
	} else {
		l.audioIn.keep(pcm)
	}
	edge := voice.NoEdge
	// Our own voice is neither an utterance nor the noise around the robot.
	if l.state.FindsSpeech() && (!ours || l.state.Hearing()) {
		edge = l.audioIn.pointer.Feed(pcm)
	}
	if edge == voice.NoEdge && l.hasFinished() {
		edge = voice.SpeechEnded
	}
	l.tap.PacketFromRobot(l.audioIn.pointer.Voiced() || l.state.Mode() == xiaozhi.Manual && l.state.Hearing())
	switch edge {
	case voice.SpeechBegan:
		l.input(ctx, dialogue.SpeechBegan{})
	case voice.SpeechEnded:
		l.input(ctx, dialogue.SpeechEnded{})
	}
}

// hasFinished reports whether the utterance under way is a whole sentence, and it is
// quiet after that. In push to talk the button says when. A stranger's sentence ends
// with the full quiet: nothing of the household's is looked up for it before.
func (l *loop) hasFinished() bool {
	if !l.state.Hearing() || l.utterance == nil || l.state.Mode() == xiaozhi.Manual {
		return false
	}
	if l.turn == nil || l.turn.options.Settled == nil || !l.turn.trusted.Load() {
		return false
	}
	answer := l.state.Asking()
	return l.audioIn.pointer.Finished(l.utterance, func(text string) bool { return l.turn.options.Settled(text, answer) })
}

// decode returns the sound of a packet, or sound in place of one that was lost.
func (a *audioInput) decode(packet xiaozhi.Audio) ([]int16, error) {
	if packet.Lost {
		return a.decoder.Conceal()
	}
	return a.decoder.Decode(packet.Opus)
}

// cancelEcho makes our own voice ours to take out of what the robot hears.
func (l *loop) cancelEcho(on bool) error {
	l.audioIn.close()
	l.audioIn.echo = nil
	l.player.SetEcho(nil)
	if !on {
		return nil
	}
	if l.framing != xiaozhi.Framing2 {
		l.log.Warn("the robot leaves echo cancellation to us, but its framing carries no timestamps: " +
			"speech will not interrupt it; it gets another when it next boots")
	}
	echo, err := voice.NewEcho()
	if err != nil {
		return err
	}
	l.audioIn.echo = echo
	l.player.SetEcho(echo)
	return nil
}
