package httpserver

import (
	"context"
	"sync"
)

// Downloads counts the answers that robots read for seconds: images, assets and sounds. The
// firmware may crash if our side ends such a connection, so an appliance that stops waits
// for them. The zero value is ready for use.
type Downloads struct {
	mu       sync.Mutex
	running  int
	finished chan struct{} // closed when no download runs; nil until Finish
}

func (d *Downloads) start() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.finished != nil {
		return false
	}
	d.running++
	return true
}

func (d *Downloads) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running--; d.running == 0 && d.finished != nil {
		close(d.finished)
	}
}

// Finish refuses further downloads, and waits until the running ones have ended, or ctx
// has. It returns the number still running. It is called once.
func (d *Downloads) Finish(ctx context.Context) (left int) {
	d.mu.Lock()
	d.finished = make(chan struct{})
	if d.running == 0 {
		close(d.finished)
	}
	d.mu.Unlock()
	select {
	case <-d.finished:
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running
}
