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
	slice = 20 * time.Millisecond // duration of the sound that one volume describes
	// playedTimeout is how long the server waits for the client's report that all sound was
	// played, counted from the end of the sound.
	playedTimeout = 10 * time.Second
	// dropsSoundFor is how long a client drops sound after an interruption. Usually a reply takes
	// longer; only a reply without a language model has to wait for the end of this time.
	dropsSoundFor = 500 * time.Millisecond
)

// converse has the agent answer a text, and sends each sentence of the reply with its sound.
func (c *client) converse(ctx context.Context, text string) {
	o, release := c.server.acquireOptions()
	defer release()
	s := speech{Options: o, client: c, from: c.interrupted.Add(dropsSoundFor), mouth: make(chan []float64)}
	mouth := o.Loudness.Mouth(c.conn.Session())
	defer o.Loudness.SetEnd(c.conn.Session(), time.Time{})
	var moving sync.WaitGroup
	mouthCtx, stop := context.WithCancel(ctx)
	defer moving.Wait()
	defer stop()
	moving.Go(func() { mouth.Run(mouthCtx, s.mouth) })
	err := c.conn.Chat(ctx, text, func(r agent.Reply) error { return s.sendReply(ctx, r) })
	switch {
	case ctx.Err() != nil: // interrupted: the client expects no more messages
	case err != nil:
		c.fail(ctx, s.until, c.conn.ErrorText(err))
	default:
		c.finish(ctx, s.until)
	}
}

// fail ends a reply with an error. It sends the error as a subtitle too, because the client
// shows an error only for a moment. until is as in finish.
func (c *client) fail(ctx context.Context, until time.Time, sentence string) {
	c.finish(ctx, until, newErrorMessage(sentence), newSubtitle(sentence))
}

// finish sends the last messages of a reply, waits until the client has played the sound, and
// tells the client that the reply has ended. until is when the sound ends, or zero if the reply has
// no sound.
func (c *client) finish(ctx context.Context, until time.Time, last ...any) {
	if c.send(ctx, last...) != nil {
		return
	}
	if !until.IsZero() && !c.waitPlayed(ctx, until) {
		return
	}
	_ = c.send(ctx, bareMessage{"force-new-message"}, newControl("conversation-chain-end")) // fails only if the client has disconnected
}

// waitPlayed waits until the client has played all sound. until is when the sound ends; without a
// report from the client, waitPlayed returns true after another playedTimeout. It returns false if
// ctx ends or the client has disconnected.
func (c *client) waitPlayed(ctx context.Context, until time.Time) bool {
	select {
	case <-c.played: // discard an earlier report: the client repeats its reports
	default:
	}
	if c.send(ctx, bareMessage{"backend-synth-complete"}) != nil {
		return false
	}
	timer := time.NewTimer(time.Until(until) + playedTimeout) // a hidden page sends no report
	defer timer.Stop()
	for {
		select {
		case <-c.played:
			// The report may belong to an interrupted reply, or come from a client that plays
			// no sound. The reply therefore lasts at least until the end of the sound.
			timer.Reset(time.Until(until))
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// speech is a reply that is being spoken.
type speech struct {
	Options // options when the reply began
	client  *client
	face    *actions       // face for the next sentence
	begun   bool           // whether a sentence was sent
	from    time.Time      // time before which the client would drop sound
	until   time.Time      // earliest time at which the client has played all sound; zero before the first sound
	mouth   chan []float64 // receives the levels of the sound
}

// sendReply sends a sentence with its sound, or sets the face for the next sentence.
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
			s.client.conn.Log().Warn("could not speak a sentence", "err", err)
			pcm = nil // the sentence is only shown
		}
		text := r.Text
		if s.begun {
			text = " " + text // the client joins sentences without a space
		}
		s.begun = true
		if err := sleepUntil(ctx, s.from); err != nil {
			return err
		}
		if err := s.client.send(ctx, newAudio(pcm, display{Text: text, Name: s.Name}, s.face)); err != nil {
			return err
		}
		if len(pcm) == 0 {
			return s.client.send(ctx, newSubtitle(r.Text)) // without sound the client does not show the sentence as a subtitle
		}
		s.until = slices.MaxFunc([]time.Time{s.until, time.Now()}, time.Time.Compare).Add(time.Duration(len(pcm)) * time.Second / voice.SpeakerRate)
		s.Loudness.SetEnd(s.client.conn.Session(), s.until)
		select {
		case s.mouth <- voice.LevelsOf(pcm):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// sleepUntil waits until a time. It returns the error of ctx if ctx ends earlier.
func sleepUntil(ctx context.Context, until time.Time) error {
	remaining := time.Until(until)
	if remaining <= 0 {
		return nil
	}
	timer := time.NewTimer(remaining)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// speak returns the sound of a sentence at voice.SpeakerRate, or nil without a synthesizer. It stops a
// synthesizer that produces more sound than the sentence can have.
func (o Options) speak(ctx context.Context, sentence string) (pcm []int16, err error) {
	if o.Synthesizer == nil {
		return nil, nil
	}
	maxSamples := int(voice.MaxSpeech(sentence) * voice.SpeakerRate / time.Second)
	err = o.Synthesizer.Synthesize(ctx, sentence, o.Speech, func(chunk []int16) error {
		if pcm = append(pcm, chunk...); len(pcm) > maxSamples {
			return voice.ErrEndless
		}
		return ctx.Err()
	})
	return pcm, err
}

// newAudio returns the message for a sentence. If pcm is empty, the client only shows the
// sentence.
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

// volumes returns the loudness of each slice of pcm: the root mean square of the samples
// relative to the loudest slice, rounded to two decimal places.
func volumes(pcm []int16) []float64 {
	levels := []float64{}
	for samples := range slices.Chunk(pcm, int(slice*voice.SpeakerRate/time.Second)) {
		var sum float64
		for _, s := range samples {
			sum += float64(s) * float64(s)
		}
		levels = append(levels, math.Sqrt(sum/float64(len(samples))))
	}
	if len(levels) == 0 {
		return levels
	}
	loudest := slices.Max(levels)
	for i := range levels {
		if loudest > 0 {
			levels[i] = math.Round(100*levels[i]/loudest) / 100
		}
	}
	return levels
}
