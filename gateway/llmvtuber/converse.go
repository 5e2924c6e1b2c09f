package llmvtuber

import (
	"bytes"
	"context"
	"encoding/base64"
	"math"
	"slices"
	"sync"
	"time"

	"perch/agent"
	"perch/voice"
)

const (
	slice = 20 * time.Millisecond // of sound, with one volume
	// spare is how long after its sound a client may take to say that it was played.
	spare = 10 * time.Second
)

// converse has a text answered, and what is said spoken.
func (c *client) converse(ctx context.Context, text string) {
	select {
	case <-c.played: // of an answer before
	default:
	}
	s := speech{client: c, mouth: make(chan []float64)}
	mouth := c.door.o.Loudness.Mouth(c.conn.Session())
	var moving sync.WaitGroup
	playing, stop := context.WithCancel(ctx)
	defer moving.Wait()
	defer stop()
	moving.Go(func() { mouth.Run(playing, s.mouth) })
	err := c.conn.Chat(ctx, text, func(r agent.Reply) error { return s.take(ctx, r) })
	switch {
	case ctx.Err() != nil: // the client has stopped it, and expects nothing more
	case err != nil:
		c.end(ctx, s.length, newFailed(c.conn.Told(err)))
	default:
		c.end(ctx, s.length)
	}
}

// end ends an answer, once the client has played its sound.
func (c *client) end(ctx context.Context, length time.Duration, last ...any) {
	if c.send(ctx, last...) != nil {
		return
	}
	if length > 0 {
		if c.send(ctx, bare{"backend-synth-complete"}) != nil {
			return
		}
		late := time.NewTimer(length + spare)
		defer late.Stop()
		select {
		case <-c.played:
		case <-late.C: // its page may be hidden; the next question may come all the same
		case <-ctx.Done():
			return
		}
	}
	_ = c.send(ctx, bare{"force-new-message"}, control("conversation-chain-end")) // the client may have left
}

// speech is an answer as it is spoken.
type speech struct {
	client *client
	face   *actions // of the next sentence
	length time.Duration
	mouth  chan []float64 // gets the levels of what is sent
}

// take sends a sentence with its sound.
func (s *speech) take(ctx context.Context, r agent.Reply) error {
	o := s.client.door.o
	switch r := r.(type) {
	case agent.Felt:
		s.face = o.Model.expression(o.Words, r)
	case agent.Say:
		pcm, err := o.speak(ctx, r.Text)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.client.conn.Log().Warn("a sentence was not spoken", "err", err)
			pcm = nil // it is shown all the same
		}
		s.length += time.Duration(len(pcm)) * time.Second / voice.SpeakerRate
		if err := s.client.send(ctx, newAudio(pcm, display{Text: r.Text, Name: o.Name}, s.face)); err != nil || len(pcm) == 0 {
			return err
		}
		select {
		case s.mouth <- voice.LevelsOf(pcm):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// speak is the sound of a sentence, at voice.SpeakerRate; empty where nothing speaks.
func (o Options) speak(ctx context.Context, sentence string) (pcm []int16, err error) {
	if o.Synthesizer == nil {
		return nil, nil
	}
	most := int(voice.LongestSpeech(sentence) * voice.SpeakerRate / time.Second)
	err = o.Synthesizer.Synthesize(ctx, sentence, o.Speech, func(more []int16) error {
		if pcm = append(pcm, more...); len(pcm) > most {
			return voice.ErrEndless
		}
		return ctx.Err()
	})
	return pcm, err
}

// newAudio is a sentence as it is sent. Without sound it is shown only.
func newAudio(pcm []int16, d display, face *actions) audio {
	a := audio{Type: "audio", Volumes: volumes(pcm), Slice: int(slice / time.Millisecond), Display: d, Actions: face}
	if len(pcm) == 0 {
		return a
	}
	var wav bytes.Buffer
	if err := voice.WriteWAV(&wav, voice.SpeakerRate, pcm); err != nil {
		panic(err) // a buffer takes everything
	}
	sound := base64.StdEncoding.EncodeToString(wav.Bytes())
	a.Sound = &sound
	return a
}

// volumes are how loud each slice is, of the loudest: the root of the mean square, with
// two digits.
func volumes(pcm []int16) []float64 {
	all := []float64{}
	for piece := range slices.Chunk(pcm, int(slice*voice.SpeakerRate/time.Second)) {
		var sum float64
		for _, s := range piece {
			sum += float64(s) * float64(s)
		}
		all = append(all, math.Sqrt(sum/float64(len(piece))))
	}
	if len(all) == 0 {
		return all
	}
	most := slices.Max(all)
	for i := range all {
		if most > 0 {
			all[i] = math.Round(100*all[i]/most) / 100
		}
	}
	return all
}
