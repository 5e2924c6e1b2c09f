package appliance

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"perch/event"
)

// warmer makes engines ready before they are needed.
type warmer struct {
	engines *currentEngines
	prepare func() // synthesizes the appliance's own sentences
	log     *slog.Logger
	loaded  atomic.Bool // the recognizers were, since a robot has come
}

// run loads the recognizers and synthesizes the appliance's own sentences when the first robot
// comes: an unused appliance stays small, and the first utterance need not wait. Whenever a
// robot begins to listen, the engines of the turn to come are made ready.
func (w *warmer) run(ctx context.Context, events *event.Reader) {
	var wg sync.WaitGroup
	defer wg.Wait()
	warmed := time.Time{}
	events.Each(ctx, func(e event.Envelope) {
		switch e.Event.(type) {
		case event.RobotSeen, event.RobotOnline:
			if !w.loaded.Swap(true) {
				wg.Go(func() { w.load(ctx) })
			}
		case event.ListeningStarted:
			if now := time.Now(); now.Sub(warmed) >= warmEvery {
				warmed = now
				wg.Go(func() {
					e, done := w.engines.hold()
					defer done()
					e.warm(ctx)
				})
			}
		}
	})
}

func (w *warmer) load(ctx context.Context) {
	w.prepare()
	e, done := w.engines.hold()
	defer done()
	if err := e.load(ctx); err != nil && ctx.Err() == nil {
		w.log.Error("the recognizer cannot be loaded; robots will not be understood", "err", err)
	}
}
