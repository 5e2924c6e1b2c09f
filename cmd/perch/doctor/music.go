package doctor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"perch/voice/music"
)

// triedAtOnce is how many sources of music are decoded at the same time.
const triedAtOnce = 4

// checkMusic checks that ffmpeg is installed and each source of the owner's music has sound. It does nothing without
// music.
func (d *Examination) checkMusic(ctx context.Context) {
	sources := d.Config.MusicSources()
	if len(sources) == 0 {
		return
	}
	decoder := music.NewDecoder()
	defer decoder.Close()
	errs := make([]error, len(sources))
	slots := make(chan struct{}, triedAtOnce)
	var all sync.WaitGroup
	for i, s := range sources {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = decoder.Play(s).Try(ctx)
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
