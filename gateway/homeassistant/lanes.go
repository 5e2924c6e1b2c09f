package homeassistant

import (
	"context"
	"sync"

	"perch/device"
)

// mostJobs bounds what waits to be done to one robot.
const mostJobs = 32

// lanes do what is to be done to robots: to each one thing after the other,
// and to none because of another that does not answer.
type lanes struct {
	mu   sync.Mutex
	jobs map[device.ID][]job // of those at work; the first is being done
	wg   sync.WaitGroup
}

// job is something to do. One with a name is not queued twice.
type job struct {
	name string
	do   func(context.Context)
}

// add queues a job, and reports false where too many wait.
func (l *lanes) add(ctx context.Context, id device.ID, j job) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs == nil {
		l.jobs = map[device.ID][]job{}
	}
	waiting, working := l.jobs[id]
	if len(waiting) >= mostJobs {
		return false
	}
	for i, w := range waiting {
		if i > 0 && j.name != "" && w.name == j.name {
			return true
		}
	}
	l.jobs[id] = append(waiting, j)
	if !working {
		l.wg.Go(func() { l.work(ctx, id) })
	}
	return true
}

func (l *lanes) work(ctx context.Context, id device.ID) {
	for {
		l.mu.Lock()
		j := l.jobs[id][0]
		l.mu.Unlock()
		if ctx.Err() == nil {
			j.do(ctx)
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

// wait returns when all is done. Whoever adds must have ended.
func (l *lanes) wait() { l.wg.Wait() }
