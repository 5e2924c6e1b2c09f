package doctor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"perch/voice/music"
)

// musicWithin is how long the first sound of all sources of music may take.
const musicWithin = 10 * time.Second

// checkMusic checks that ffmpeg is installed and each source of the owner's music has sound. It does nothing without
// music.
func (d *Examination) checkMusic(ctx context.Context) {
	sources := d.Config.MusicSources()
	if len(sources) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, musicWithin)
	defer cancel()
	errs := make([]error, len(sources))
	var all sync.WaitGroup
	for i, s := range sources {
		all.Go(func() {
			if errs[i] = music.Try(ctx, s); ctx.Err() != nil {
				errs[i] = fmt.Errorf("%s has sent no sound for %s; check its source in music, and the network", s.Name, musicWithin)
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
