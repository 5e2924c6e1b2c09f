package httpserver

import (
	"context"
	"sync"
)

// Downloads counts the downloads of robots, which may take seconds: firmware images, assets and sounds. The
// firmware may crash if the server closes the connection of a download, so a stopping appliance waits for
// these downloads. The zero value is ready for use.
type Downloads struct {
	mu       sync.Mutex
	running  int
	finished chan struct{} // closed when no download is running; nil until Finish is called
}

// start counts a download until finish is called. It returns false after Finish.
func (d *Downloads) start() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.finished != nil {
		return false
	}
	d.running++
	return true
}

// finish records that a download has ended.
func (d *Downloads) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running--; d.running == 0 && d.finished != nil {
		close(d.finished)
	}
}

// Finish refuses new downloads, and waits until the running ones or ctx have ended. It returns how many are
// still running. It must be called once.
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
