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
	loaded  atomic.Bool // whether a robot was seen, so that the recognizers are loaded or being loaded
}

// NewWarmer returns a Warmer. prepare synthesizes the appliance's own sentences.
func NewWarmer(c *Current, prepare func(), log *slog.Logger) *Warmer {
	return &Warmer{engines: c, prepare: prepare, log: log}
}

// Load loads the recognizers of next, which is about to replace the current engines, if the current
// recognizers are loaded. The next turn then need not wait for them.
func (w *Warmer) Load(ctx context.Context, next *Set) error {
	if !w.loaded.Load() {
		return nil
	}
	return next.load(ctx)
}

// Replaced must be called after engines were replaced. It synthesizes the appliance's own sentences
// with the current engines, if a robot was seen since the start.
func (w *Warmer) Replaced() {
	if w.loaded.Load() {
		w.prepare()
	}
}

// Run loads the recognizers and synthesizes the appliance's own sentences when the first robot checks in
// or opens its channel, so that an appliance without robots needs little memory. When a robot begins to
// listen, Run warms the engines of the next turn, at most once in warmInterval. It returns when ctx is done.
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
			if now := time.Now(); now.Sub(warmed) >= warmInterval {
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

// load synthesizes the appliance's own sentences and loads the recognizers.
func (w *Warmer) load(ctx context.Context) {
	w.prepare()
	e, done := w.engines.Acquire()
	defer done()
	if err := e.load(ctx); err != nil && ctx.Err() == nil {
		w.log.Error("cannot load the recognizer; robots will not understand speech", "err", err)
	}
}
