package engines

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"perch/event"
)

// Warmer loads and warms engines before they are needed.
type Warmer struct {
	engines *Current
	prepare func() // synthesizes the appliance's own sentences
	log     *slog.Logger
	loaded  atomic.Bool // a robot has come, so that the recognizers are loaded
}

// NewWarmer returns a Warmer. prepare synthesizes the appliance's own sentences.
func NewWarmer(c *Current, prepare func(), log *slog.Logger) *Warmer {
	return &Warmer{engines: c, prepare: prepare, log: log}
}

// Load loads the recognizers of the engines that are about to replace others, if those were loaded,
// so that the next turn need not wait.
func (w *Warmer) Load(ctx context.Context, next *Set) error {
	if !w.loaded.Load() {
		return nil
	}
	return next.load(ctx)
}

// Replaced synthesizes the appliance's own sentences with engines that have replaced others, if a
// robot has come.
func (w *Warmer) Replaced() {
	if w.loaded.Load() {
		w.prepare()
	}
}

// Run loads the recognizers and synthesizes the appliance's own sentences when the first robot comes,
// so that an unused appliance stays small. Whenever a robot begins to listen, it warms the engines of
// the next turn. It returns when ctx ends.
func (w *Warmer) Run(ctx context.Context, events *event.Reader) {
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
					e, done := w.engines.Acquire()
					defer done()
					e.warm(ctx)
				})
			}
		}
	})
}

func (w *Warmer) load(ctx context.Context) {
	w.prepare()
	e, done := w.engines.Acquire()
	defer done()
	if err := e.load(ctx); err != nil && ctx.Err() == nil {
		w.log.Error("the recognizer cannot be loaded; robots will not be understood", "err", err)
	}
}
