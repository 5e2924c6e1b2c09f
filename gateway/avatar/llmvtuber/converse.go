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
	slice = 20 * time.Millisecond // of sound for each volume
	// spare is how long after the end of its sound a client may take to report that.
	spare = 10 * time.Second
	// settle is how long after an interruption a client drops sound. Only answers without a
	// language model are as fast.
	settle = 500 * time.Millisecond
)

// converse answers a text, and sends each sentence with its sound.
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
	case ctx.Err() != nil: // interrupted: the client expects no end
	case err != nil:
		c.fail(ctx, s.over, c.conn.ErrorText(err))
	default:
		c.finish(ctx, s.over)
	}
}

// fail ends an answer with an error. It sends the error as a subtitle too, because the client
// shows an error only for a moment.
func (c *client) fail(ctx context.Context, over time.Time, sentence string) {
	c.finish(ctx, over, newFailed(sentence), subtitle(sentence))
}

// finish sends the last messages of an answer, and ends it when the client has played its
// sound, which cannot be before over. A zero over means no sound.
func (c *client) finish(ctx context.Context, over time.Time, last ...any) {
	if c.send(ctx, last...) != nil {
		return
	}
	if !over.IsZero() && !c.isPlayed(ctx, over) {
		return
	}
	_ = c.send(ctx, bare{"force-new-message"}, control("conversation-chain-end")) // the client may have left
}

// isPlayed waits until the client has played all sound, and returns false if it was
// interrupted.
func (c *client) isPlayed(ctx context.Context, over time.Time) bool {
	select {
	case <-c.played: // an earlier report: the client repeats each
	default:
	}
	if c.send(ctx, bare{"backend-synth-complete"}) != nil {
		return false
	}
	late := time.NewTimer(time.Until(over) + spare) // a hidden page does not report
	defer late.Stop()
	for {
		select {
		case <-c.played:
			// The report may belong to an interrupted answer, or to a client that plays
			// nothing, so it does not end the answer before its time.
			late.Reset(time.Until(over))
		case <-late.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// speech is the state of an answer that is being spoken.
type speech struct {
	Options // at the beginning of the answer
	client  *client
	face    *actions // for the next sentence
	begun   bool
	from    time.Time      // from when on the client plays sound
	over    time.Time      // the earliest end of all sound; zero without sound
	mouth   chan []float64 // receives the levels of the sound
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
			pcm = nil // the sentence is still shown
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
			return s.client.send(ctx, subtitle(r.Text)) // the client makes subtitles only of sound
		}
		s.over = slices.MaxFunc([]time.Time{s.over, time.Now()}, time.Time.Compare).Add(time.Duration(len(pcm)) * time.Second / voice.SpeakerRate)
		select {
		case s.mouth <- voice.LevelsOf(pcm):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// until waits until a time, or for the end of ctx.
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

// speak returns the sound of a sentence at voice.SpeakerRate, or nil without a synthesizer.
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

// newAudio returns the message for a sentence; without samples it is only shown.
func newAudio(pcm []int16, d display, face *actions) audio {
	a := audio{Type: "audio", Volumes: volumes(pcm), Slice: int(slice / time.Millisecond), Display: d, Actions: face}
	if len(pcm) == 0 {
		return a
	}
	var wav bytes.Buffer
	if err := voice.WriteWAV(&wav, voice.SpeakerRate, pcm); err != nil {
		panic(err) // a bytes.Buffer returns no error
	}
	sound := base64.StdEncoding.EncodeToString(wav.Bytes())
	a.Sound = &sound
	return a
}

// volumes returns the loudness of each slice relative to the loudest: the root mean square,
// rounded to two digits.
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
