package doctor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"perch/voice/music"
)

const (
	triedAtOnce = 4                // sources of music that are decoded at the same time
	triedWithin = 30 * time.Second // time for all sources
)

// checkMusic checks that ffmpeg is installed and each source of the owner's music has sound. It does nothing without
// music.
func (d *Examination) checkMusic(ctx context.Context) {
	sources := d.Config.MusicSources()
	if len(sources) == 0 {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, triedWithin, fmt.Errorf("all music together took longer than %s", triedWithin))
	defer cancel()
	decoder := music.NewDecoder()
	defer decoder.Close()
	errs := make([]error, len(sources))
	slots := make(chan struct{}, triedAtOnce)
	var all sync.WaitGroup
	for i, s := range sources {
		all.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				errs[i] = decoder.Play(s).Try(ctx)
			case <-ctx.Done():
				errs[i] = fmt.Errorf("%s was not tried: %w", s.Name, context.Cause(ctx))
			}
		})
	}
	all.Wait()
	working := 0
	for _, err := range errs {
		switch {
		case errors.Is(err, music.ErrNoFFmpeg):
			d.add("music", music.ErrNoFFmpeg, "")
			return
		case err != nil:
			d.add("music", err, "")
		default:
			working++
		}
	}
	if working > 0 {
		d.add("music", nil, fmt.Sprintf("%d of %d can be played", working, len(sources)))
	}
}
