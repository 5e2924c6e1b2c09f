package device

import (
	"context"
	"sync"
)

// MostJobs bounds a robot's queue; an owner's rule has at most 20 acts.
const MostJobs = 32

// Lanes do what is to be done to robots: to each one thing after the other,
// and to none because of another that does not answer. The zero value is ready.
// Its methods may be called from any goroutine.
type Lanes struct {
	mu   sync.Mutex
	jobs map[ID][]queued // of those at work; the first is being done
	wg   sync.WaitGroup
}

// Job is something to do. One with a name is not queued twice.
type Job struct {
	Name string
	Do   func(context.Context)
}

type queued struct {
	Job
	ctx context.Context
}

// Add queues a job, which is dropped where ctx has ended when its turn comes.
// It reports false where too many wait. The empty id has a lane as well.
func (l *Lanes) Add(ctx context.Context, id ID, j Job) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs == nil {
		l.jobs = map[ID][]queued{}
	}
	waiting, working := l.jobs[id]
	if len(waiting) >= MostJobs {
		return false
	}
	for i, w := range waiting {
		if i > 0 && j.Name != "" && w.Name == j.Name {
			return true
		}
	}
	l.jobs[id] = append(waiting, queued{j, ctx})
	if !working {
		l.wg.Go(func() { l.work(id) })
	}
	return true
}

// work does what waits for one robot, until nothing does.
func (l *Lanes) work(id ID) {
	for {
		l.mu.Lock()
		j := l.jobs[id][0]
		l.mu.Unlock()
		if j.ctx.Err() == nil {
			j.Do(j.ctx)
		}
		l.mu.Lock()
		l.jobs[id] = l.jobs[id][1:]
		if len(l.jobs[id]) == 0 {
			delete(l.jobs, id)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}

// Wait returns when all is done. All goroutines that add must have ended.
func (l *Lanes) Wait() { l.wg.Wait() }
