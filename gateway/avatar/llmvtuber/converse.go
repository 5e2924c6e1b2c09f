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
	// settle is how long a client that has interrupted an answer may take until it plays the
	// next: it drops what comes before. Only answers without a language model are as fast.
	settle = 500 * time.Millisecond
)

// converse has a text answered, and what is said spoken.
func (c *client) converse(ctx context.Context, text string) {
	o, done := c.server.acquireOptions()
	defer done()
	s := speech{Options: o, client: c, from: c.interrupted.Add(settle), mouth: make(chan []float64)}
	mouth := o.Loudness.Mouth(c.conn.Session())
	var moving sync.WaitGroup
	playing, stop := context.WithCancel(ctx)
	defer moving.Wait()
	defer stop()
	moving.Go(func() { mouth.Run(playing, s.mouth) })
	err := c.conn.Chat(ctx, text, func(r agent.Reply) error { return s.sendReply(ctx, r) })
	switch {
	case ctx.Err() != nil: // the client has stopped it, and expects nothing more
	case err != nil:
		c.fail(ctx, s.over, c.conn.ErrorText(err))
	default:
		c.finish(ctx, s.over)
	}
}

// fail ends an answer with an error. The client shows it for a moment, and would go on to
// show what the answer began with.
func (c *client) fail(ctx context.Context, over time.Time, sentence string) {
	c.finish(ctx, over, newFailed(sentence), subtitle(sentence))
}

// finish ends an answer, once the client has played its sound, which cannot be before over;
// zero is no sound.
func (c *client) finish(ctx context.Context, over time.Time, last ...any) {
	if c.send(ctx, last...) != nil {
		return
	}
	if !over.IsZero() && !c.isPlayed(ctx, over) {
		return
	}
	_ = c.send(ctx, bare{"force-new-message"}, control("conversation-chain-end")) // the client may have left
}

// isPlayed waits until the client has played all sound, and returns false if it has
// interrupted it.
func (c *client) isPlayed(ctx context.Context, over time.Time) bool {
	select {
	case <-c.played: // it says so ten times over
	default:
	}
	if c.send(ctx, bare{"backend-synth-complete"}) != nil {
		return false
	}
	late := time.NewTimer(time.Until(over) + spare) // its page may be hidden; the next question may come all the same
	defer late.Stop()
	for {
		select {
		case <-c.played:
			// It says so of an answer that was interrupted, too, when the next question is
			// already asked, and where it can play nothing.
			late.Reset(time.Until(over))
		case <-late.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// speech is an answer as it is spoken.
type speech struct {
	Options // as the answer began
	client  *client
	face    *actions // of the next sentence
	begun   bool
	from    time.Time      // when the client takes sound
	over    time.Time      // when all sound can have been played; zero is no sound
	mouth   chan []float64 // gets the levels of what is sent
}

// sendReply sends a sentence with its sound.
func (s *speech) sendReply(ctx context.Context, r agent.Reply) error {
	switch r := r.(type) {
	case agent.Felt:
		s.face = s.Model.expression(s.Words, r)
	case agent.Say:
		pcm, err := s.speak(ctx, r.Text)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.client.conn.Log().Warn("a sentence was not spoken", "err", err)
			pcm = nil // it is shown all the same
		}
		text := r.Text
		if s.begun {
			text = " " + text // the client joins them as they are
		}
		s.begun = true
		if err := until(ctx, s.from); err != nil {
			return err
		}
		if err := s.client.send(ctx, newAudio(pcm, display{Text: text, Name: s.Name}, s.face)); err != nil {
			return err
		}
		if len(pcm) == 0 {
			return s.client.send(ctx, subtitle(r.Text)) // it makes a subtitle only of what it plays
		}
		s.over = latest(s.over, time.Now()).Add(time.Duration(len(pcm)) * time.Second / voice.SpeakerRate)
		select {
		case s.mouth <- voice.LevelsOf(pcm):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// until waits for a time.
func until(ctx context.Context, at time.Time) error {
	left := time.Until(at)
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
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
