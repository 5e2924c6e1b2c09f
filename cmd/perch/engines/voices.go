package engines

import (
	"context"
	"slices"
	"sync"
	"time"

	"perch/event"
	"perch/voice"
)

// voices holds the voices that a synthesizer has listed.
type voices struct {
	fetch func(context.Context) ([]voice.Named, error) // nil if the engine lists no voices

	mu    sync.Mutex
	list  []voice.Named
	known bool // whether list was set
}

// voicesTimeout is the maximum duration of the request for an engine's voices.
const voicesTimeout = 10 * time.Second

// latest returns the voices that were listed last. known is false if the engine can list its voices but
// no list has come yet.
func (v *voices) latest() (list []voice.Named, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.list, v.known || v.fetch == nil
}

// set sets the voices and reports whether they have changed.
func (v *voices) set(list []voice.Named) (changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	changed = !v.known || !slices.Equal(v.list, list)
	v.list, v.known = list, true
	return changed
}

// listVoices requests the voices of a synthesizer, and publishes an event if they have changed. It only logs
// an error, which does not count as a failure of the engine.
func (n *Engine) listVoices(ctx context.Context, publish func(event.Event)) {
	ctx, cancel := context.WithTimeout(ctx, voicesTimeout)
	defer cancel()
	switch list, err := n.voices.fetch(ctx); {
	case err != nil:
		n.log.Info("an engine did not list its voices", "engine", n.Part, "err", err)
	case n.voices.set(voice.ShortList(list)) && publish != nil:
		publish(event.Changed{What: "voices"})
	}
}

// keepVoices sets the voices of each synthesizer that is not in before to those of a synthesizer in before with the
// same kind and address. They are valid until the new synthesizer lists its voices.
func (e *Set) keepVoices(before *Set) {
	for _, n := range e.All {
		i := slices.IndexFunc(before.All, func(b *Engine) bool {
			return b.voices.fetch != nil && b.Kind == n.Kind && b.Where == n.Where
		})
		if i < 0 || n.voices.fetch == nil || slices.Contains(before.All, n) {
			continue
		}
		if list, known := before.All[i].voices.latest(); known {
			n.voices.set(list)
		}
	}
}

// Voices returns the voices that a robot can use: those of the first synthesizer. known is false if it can list its
// voices but no list has come yet.
func (e *Set) Voices() (list []voice.Named, known bool) {
	for _, n := range e.All {
		if n.Synthesizer != nil {
			return n.voices.latest()
		}
	}
	return nil, true
}
