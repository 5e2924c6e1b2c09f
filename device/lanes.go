package device

import (
	"context"
	"sync"
)

// MaxJobs is the maximum length of a robot's queue, including the running job. It exceeds 20, the maximum
// number of actions of a rule (package perception).
const MaxJobs = 32

// Lanes runs jobs in one queue per robot, so that a robot that does not respond delays only its own
// jobs. The zero value is ready to use. Its methods are safe for concurrent use.
type Lanes struct {
	mu   sync.Mutex
	jobs map[ID][]queued // only robots with a running worker; the first job of each robot is running
	wg   sync.WaitGroup
}

// Job is a unit of work. Name may be empty. A job with a name is not queued while another job with the same
// name waits in the robot's queue.
type Job struct {
	Name string
	Do   func(context.Context)
}

// queued is a job with the context that was passed to Add.
type queued struct {
	Job
	ctx context.Context
}

// Add queues a job for a robot. The job is not run if ctx ends before its start. Add returns false if the
// queue is full, and true if the job is queued or a job with the same name waits already. The empty ID has
// its own queue.
func (l *Lanes) Add(ctx context.Context, id ID, j Job) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs == nil {
		l.jobs = map[ID][]queued{}
	}
	waiting, working := l.jobs[id]
	if len(waiting) >= MaxJobs {
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

// work runs the jobs of one robot until its queue is empty.
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

// Wait waits until all jobs have ended. No goroutine may call Add at the same time.
func (l *Lanes) Wait() { l.wg.Wait() }
