// Package program runs a foreign program as a child: in a separate process group,
// without our keys in its environment, connected by its standard input and output. It
// retains the end of its standard error, and kills it with all processes it has
// started, as far as these can be found: see descendants.go.
//
// Concurrency: one goroutine reads the standard error, one waits for the process, and
// one watches over it. The caller reads and writes on its own goroutines. Done is closed
// when all three and the process have ended, and the pipes are closed by then.
package program

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"perch/child"
)

// Grace periods.
const (
	termGrace  = 2 * time.Second        // between SIGTERM and SIGKILL
	drainGrace = 500 * time.Millisecond // for output that is still in the pipes
)

// Options of Start. Only Command is required.
type Options struct {
	Command []string // the program and its arguments
	Dir     string   // the folder it works in; the current one
	// Env is added to the part of our environment that child.Environ passes on.
	Env []string
}

// Program is a process that has been started. It is safe for concurrent use.
type Program struct {
	cmd    *exec.Cmd
	mark   string // in the environment of all its processes
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	errors tail

	terminate func()        // closes ended, once
	ended     chan struct{} // Terminate was called
	unread    func()        // closes silent, once
	silent    chan struct{} // its output is not read any more
	exited    chan struct{}

	how   string // set before exited is closed, as is asked
	asked bool
}

// Environ returns variables in the form of a process environment, sorted.
func Environ(variables map[string]string) (environ []string) {
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		environ = append(environ, name+"="+variables[name])
	}
	return environ
}

// Start starts a program. The error is the bare cause without the program's path, so
// that the caller can name the program. It is exec.ErrNotFound or os.ErrNotExist, by
// errors.Is, if there is no such program or folder.
func Start(o Options) (*Program, error) {
	if len(o.Command) == 0 {
		return nil, errors.New("no command is given")
	}
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	cmd.Dir = o.Dir
	mark := markName + "=" + rand.Text()
	cmd.Env = append(append(child.Environ(os.Environ()), o.Env...), mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &Program{cmd: cmd, mark: mark, ended: make(chan struct{}), silent: make(chan struct{}), exited: make(chan struct{})}
	p.terminate = sync.OnceFunc(func() { close(p.ended) })
	p.unread = sync.OnceFunc(func() { close(p.silent) })
	theirs, err := p.pipes()
	if err == nil {
		err = cmd.Start()
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		p.closePipes()
		return nil, bare(err)
	}
	p.watch()
	return p, nil
}

// bare returns the cause without the path.
func bare(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	if f, ok := errors.AsType[*exec.Error](err); ok {
		return f.Err
	}
	return err
}

// pipes makes the three pipes, and returns the child's ends. With those of os/exec, Wait
// could discard output that has not been read.
func (p *Program) pipes() (theirs []*os.File, err error) {
	var in, out, complaint *os.File
	for _, ends := range [][2]**os.File{{&in, &p.stdin}, {&p.stdout, &out}, {&p.stderr, &complaint}} {
		if *ends[0], *ends[1], err = os.Pipe(); err != nil {
			err = fmt.Errorf("make a pipe: %w", err)
			break
		}
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, complaint
	return []*os.File{in, out, complaint}, err
}

func (p *Program) closePipes() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		_ = f.Close() // a nil file returns an error
	}
}

// Read reads its standard output. It fails with io.EOF at the end of the output, and
// shortly after the process has ended, even if another process still holds it open.
func (p *Program) Read(b []byte) (int, error) { return p.stdout.Read(b) }

// Write writes to its standard input, and blocks while the program does not read. It
// fails after Terminate or the end of the process.
func (p *Program) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// Silent reports that the output has ended, or will not be read any further. The
// reader must call it after handling its output: Done is not closed before. A process
// that continues is stopped after half a second, because it cannot be reached any more.
func (p *Program) Silent() { p.unread() }

// Terminate starts stopping it without waiting: its input is closed, and its group gets
// SIGTERM and, two seconds later, SIGKILL. Processes that have left the group are then
// killed.
func (p *Program) Terminate() { p.terminate() }

// Done is closed when all of it has ended.
func (p *Program) Done() <-chan struct{} { return p.exited }

// Close stops it, and waits until all of it has ended.
func (p *Program) Close() {
	p.Terminate()
	<-p.exited
}

// How waits for its end and returns how the process ended, such as "exit status 0" or
// "signal: killed", and whether it was stopped by Terminate or after Silent.
func (p *Program) How() (how string, asked bool) {
	<-p.exited
	return p.how, p.asked
}

// Stderr returns the end of its standard error, at most MostStderr bytes. It is
// unfiltered and may contain keys.
func (p *Program) Stderr() string { return p.errors.String() }

// watch waits for the end of the process and cleans up.
func (p *Program) watch() {
	exited, complained := make(chan error, 1), make(chan struct{})
	go func() { p.errors.read(p.stderr); close(complained) }()
	go func() { exited <- p.cmd.Wait() }()
	go func() {
		defer close(p.exited)
		err, asked := p.leave(exited)
		// The pipes are still read, but only for a moment: a process that left the group may
		// hold them open for good.
		_ = p.stdout.SetReadDeadline(time.Now().Add(drainGrace))
		_ = p.stderr.SetReadDeadline(time.Now().Add(drainGrace))
		<-complained
		select {
		case <-p.silent:
		case <-p.ended:
		}
		p.closePipes()
		sweep(p.mark)
		p.how, p.asked = "exit status 0", asked
		if err != nil {
			p.how = err.Error()
		}
	}()
}

// leave waits until the process has ended, and stops it if requested: by closing its
// input and SIGTERM, and then SIGKILL. The rest of its group is killed in any case, and
// so are descendants that have left it.
func (p *Program) leave(exited <-chan error) (err error, asked bool) {
	group := -p.cmd.Process.Pid
	var others []*os.Process // that may have left the group
	defer func() {
		_ = syscall.Kill(group, syscall.SIGKILL)
		for _, p := range others {
			_ = p.Signal(syscall.SIGKILL)
			_ = p.Release()
		}
	}()
	select {
	case err := <-exited:
		return err, false
	case <-p.ended:
	case <-p.silent:
		// It may be about to end by itself.
		select {
		case err := <-exited:
			return err, false
		case <-p.ended:
		case <-time.After(drainGrace):
		}
	}
	for _, pid := range descendants(p.cmd.Process.Pid) {
		if other, err := os.FindProcess(pid); err == nil { // a handle, so that the id cannot be reused for another
			others = append(others, other)
		}
	}
	_ = p.stdin.Close()
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case err := <-exited:
		return err, true
	case <-time.After(termGrace):
		_ = syscall.Kill(group, syscall.SIGKILL)
		return <-exited, true
	}
}
