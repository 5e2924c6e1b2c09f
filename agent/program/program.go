// Package program runs a foreign program as a child process in its own process group.
// The caller uses the program's standard input and output; the package stores the end of
// its standard error. The program's environment contains none of the keys of this process.
// When the program has ended or is stopped, the package also kills the processes that the program
// has started. The comment on markName describes which of them it does not find.
//
// Concurrency: one goroutine reads the standard error, one waits for the process, and one
// stops the process and cleans up. The caller reads and writes on its own goroutines. Done
// is closed when the process and the three goroutines have ended and the pipes are closed.
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
	termGrace  = 2 * time.Second        // time between SIGTERM and SIGKILL
	drainGrace = 500 * time.Millisecond // time to read the output that is still in the pipes; time to end after EndRead
)

// Options are the options of Start. Only Command is required.
type Options struct {
	Command []string // program and its arguments
	Dir     string   // working directory; "" means the current directory
	// Env holds NAME=value entries. They are added to the variables of this process that
	// child.Environ selects.
	Env []string
}

// Program is a process that has been started. It is safe for concurrent use.
type Program struct {
	cmd        *exec.Cmd
	mark       string // environment entry that identifies the program's processes
	stdin      *os.File
	stdout     *os.File
	stderr     *os.File
	stderrTail tail

	terminate  func()        // closes terminated; may be called several times
	terminated chan struct{} // closed by Terminate
	endRead    func()        // closes readEnded; may be called several times
	readEnded  chan struct{} // closed by EndRead
	done       chan struct{} // returned by Done
	status     string        // returned by ExitStatus; set before done is closed
	wasStopped bool          // returned by ExitStatus; set before done is closed
}

// Environ returns variables as sorted NAME=value entries.
func Environ(variables map[string]string) (environ []string) {
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		environ = append(environ, name+"="+variables[name])
	}
	return environ
}

// Start starts a program. The error does not contain the program's path, so that callers
// can name the program as they like. It matches exec.ErrNotFound or os.ErrNotExist if the
// program or the working directory does not exist.
func Start(o Options) (*Program, error) {
	if len(o.Command) == 0 {
		return nil, errors.New("no command is given")
	}
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	cmd.Dir = o.Dir
	mark := markName + "=" + rand.Text()
	cmd.Env = append(append(child.Environ(os.Environ()), o.Env...), mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &Program{cmd: cmd, mark: mark, terminated: make(chan struct{}), readEnded: make(chan struct{}), done: make(chan struct{})}
	p.terminate = sync.OnceFunc(func() { close(p.terminated) })
	p.endRead = sync.OnceFunc(func() { close(p.readEnded) })
	childEnds, err := p.makePipes()
	if err == nil {
		err = cmd.Start()
	}
	for _, f := range childEnds {
		_ = f.Close()
	}
	if err != nil {
		p.closePipes()
		return nil, withoutPath(err)
	}
	p.watch()
	return p, nil
}

// withoutPath returns the cause that an error with a path contains, or the error itself if
// it has no path.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	if f, ok := errors.AsType[*exec.Error](err); ok {
		return f.Err
	}
	return err
}

// makePipes makes the three pipes, and returns the child's ends. It does not use the pipes
// of os/exec, because Cmd.Wait closes them before all output has been read.
func (p *Program) makePipes() (childEnds []*os.File, err error) {
	var in, out, errOut *os.File
	for _, ends := range [][2]**os.File{{&in, &p.stdin}, {&p.stdout, &out}, {&p.stderr, &errOut}} {
		if *ends[0], *ends[1], err = os.Pipe(); err != nil {
			err = fmt.Errorf("make a pipe: %w", err)
			break
		}
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, errOut
	return []*os.File{in, out, errOut}, err
}

// closePipes closes this process's ends of the pipes.
func (p *Program) closePipes() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		_ = f.Close() // a nil file returns an error
	}
}

// Read reads from the program's standard output. It returns an error shortly after the
// process has ended, even if another process holds the output open.
func (p *Program) Read(b []byte) (int, error) { return p.stdout.Read(b) }

// Write writes to the program's standard input, and blocks while the program does not read.
// It returns an error after Terminate or the end of the process.
func (p *Program) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// EndRead says that the caller will not read from the program any more. The caller must
// call it when a Read has failed and the output has been handled: Done is not closed before
// EndRead or Terminate has been called. A process that still runs half a second after EndRead is
// stopped.
func (p *Program) EndRead() { p.endRead() }

// Terminate stops the program without waiting for its end. It closes the program's input
// and sends SIGTERM to the process group, followed by SIGKILL when the program has ended, at the
// latest after two seconds. The package then kills the processes that have left the group.
func (p *Program) Terminate() { p.terminate() }

// Done returns a channel that is closed when the program has ended and has been cleaned up.
func (p *Program) Done() <-chan struct{} { return p.done }

// Close stops the program, and waits until Done is closed.
func (p *Program) Close() {
	p.Terminate()
	<-p.done
}

// ExitStatus waits until Done is closed. It returns how the process ended, such as
// "exit status 0" or "signal: killed", and whether this package stopped it.
func (p *Program) ExitStatus() (status string, stopped bool) {
	<-p.done
	return p.status, p.wasStopped
}

// Stderr returns the end of the program's standard error, at most MaxStderr bytes. It may
// contain keys.
func (p *Program) Stderr() string { return p.stderrTail.String() }

// watch starts the goroutines of p.
func (p *Program) watch() {
	exited, stderrEnded := make(chan error, 1), make(chan struct{})
	go func() { p.stderrTail.readFrom(p.stderr); close(stderrEnded) }()
	go func() { exited <- p.cmd.Wait() }()
	go func() {
		defer close(p.done)
		err, stopped := p.waitProcess(exited)
		// A process that has left the group may hold the pipes open, so they are read only for
		// a moment.
		_ = p.stdout.SetReadDeadline(time.Now().Add(drainGrace))
		_ = p.stderr.SetReadDeadline(time.Now().Add(drainGrace))
		<-stderrEnded
		select {
		case <-p.readEnded:
		case <-p.terminated:
		}
		p.closePipes()
		killMarked(p.mark)
		p.status, p.wasStopped = "exit status 0", stopped
		if err != nil {
			p.status = err.Error()
		}
	}()
}

// waitProcess waits until the process has ended, and stops it after Terminate or EndRead.
// In any case it kills the rest of the process group. If it stops the process, it also
// kills descendants that have left the group.
func (p *Program) waitProcess(exited <-chan error) (err error, stopped bool) {
	group := -p.cmd.Process.Pid
	var others []*os.Process // descendants, which may have left the group
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
	case <-p.terminated:
	case <-p.readEnded:
		// The process may be about to end by itself.
		select {
		case err := <-exited:
			return err, false
		case <-p.terminated:
		case <-time.After(drainGrace):
		}
	}
	for _, pid := range descendants(p.cmd.Process.Pid) {
		if other, err := os.FindProcess(pid); err == nil { // opens a handle, which stays valid if the ID is reused
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
