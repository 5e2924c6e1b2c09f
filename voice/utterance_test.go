package voice_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/voice"
)

func readAll(ctx context.Context, u *voice.Utterance) (all []int16, err error) {
	buf := make([]int16, 1000)
	for {
		n, err := u.Read(ctx, buf, len(all))
		if n == 0 || err != nil {
			return all, err
		}
		all = append(all, buf[:n]...)
	}
}

func TestReadersFollowAnUtterance(t *testing.T) {
	u := voice.NewUtterance()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if got, err := readAll(t.Context(), u); err != nil || len(got) != 9600 || got[9599] != 9 {
				t.Errorf("read %d samples (%v)", len(got), err)
			}
		})
	}
	for i := range 10 {
		if !u.Write(slices.Repeat([]int16{int16(i)}, 960)) {
			t.Error("a short utterance is full")
		}
	}
	u.Finish()
	u.Finish()
	wg.Wait()
	if got, err := readAll(t.Context(), u); err != nil || len(got) != 9600 {
		t.Errorf("a second engine read %d samples (%v)", len(got), err)
	}
	if u.Write(make([]int16, 1)) || u.Duration() != 600*time.Millisecond {
		t.Errorf("a finished utterance has grown to %s", u.Duration())
	}
}

func TestUtteranceIsBounded(t *testing.T) {
	u := voice.NewUtterance()
	for range 200 {
		u.Write(make([]int16, voice.MicRate/10))
	}
	if u.Duration() != voice.MaxUtterance {
		t.Errorf("%s, want %s", u.Duration(), voice.MaxUtterance)
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := voice.NewUtterance().Read(ctx, make([]int16, 10), 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Read returned %v", err)
		}
	})
}

// engine is a recognizer and a synthesizer. It returns text or pcm samples of silence, and err.
type engine struct {
	name  string
	text  string
	pcm   int
	err   error
	heard int
}

func (e *engine) Name() string { return e.name }

func (e *engine) Recognize(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	all, _ := readAll(ctx, u)
	e.heard = len(all)
	return voice.Transcript{Text: e.text}, e.err
}

func (e *engine) Synthesize(_ context.Context, _ string, _ voice.Options, out func([]int16) error) error {
	if e.pcm > 0 {
		if err := out(make([]int16, e.pcm)); err != nil {
			return err
		}
	}
	return e.err
}

func TestTheNextRecognizerReadsTheSameSound(t *testing.T) {
	u := voice.NewUtterance()
	u.Write(make([]int16, 500))
	u.Finish()
	away, here := &engine{name: "away", err: voice.ErrUnavailable}, &engine{name: "here", text: "hello"}
	got, err := voice.Recognizers{away, here}.Recognize(t.Context(), u, voice.Options{})
	if err != nil || got.Text != "hello" || here.heard != 500 {
		t.Errorf("%+v, %v, heard %d samples", got, err, here.heard)
	}
	_, err = voice.Recognizers{away, away}.Recognize(t.Context(), u, voice.Options{})
	if !errors.Is(err, voice.ErrUnavailable) {
		t.Errorf("all away: %v", err)
	}
}

func TestASynthesizerThatHasSpokenIsTheLast(t *testing.T) {
	broke := &engine{name: "broke", pcm: 10, err: voice.ErrUnavailable}
	away := &engine{name: "away", err: voice.ErrUnavailable}
	fine := &engine{name: "fine", pcm: 10}
	for _, c := range []struct {
		chain voice.Synthesizers
		fails bool
		heard int
	}{{voice.Synthesizers{away, fine}, false, 10}, {voice.Synthesizers{broke, fine}, true, 10}, {voice.Synthesizers{fine, broke}, false, 10}} {
		heard := 0
		err := c.chain.Synthesize(t.Context(), "x", voice.Options{}, func(pcm []int16) error { heard += len(pcm); return nil })
		if (err != nil) != c.fails || heard != c.heard {
			t.Errorf("%s first: heard %d, %v", c.chain.Name(), heard, err)
		}
	}
}

// TestDroppedUtterance checks that a dropped utterance holds no sound, and that Wait waits for Finish.
func TestDroppedUtterance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := voice.NewUtterance()
		u.Write(make([]int16, voice.MicRate))
		ended := make(chan error, 1)
		go func() { ended <- u.Wait(t.Context()) }()
		u.Drop()
		if u.Write(make([]int16, voice.MicRate)) || u.Duration() != 0 {
			t.Errorf("it has %s", u.Duration())
		}
		go func() { ended <- u.Wait(t.Context()) }()
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatal("it has ended")
		}
		u.Finish()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
}
