// Package program runs a program of others as a child: in a process group
// of its own, without our keys in its environment, talked to over its standard
// input and output, with the last of its standard error kept, and ended with
// all it has started, as far as that can be found: see reach.go.
//
// Who runs what: one goroutine reads the standard error, one waits for the
// process, and one sees it to its end. Its caller reads and writes on
// goroutines of its own. Gone is closed when all three and the process have
// ended, and the pipes are closed by then.
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

// How a process is treated.
const (
	termGrace  = 2 * time.Second        // between SIGTERM and SIGKILL
	drainGrace = 500 * time.Millisecond // for output that is still in the pipes
)

// Options say what is started. Only Command is needed.
type Options struct {
	Command []string // the program and its arguments
	Dir     string   // the folder it works in; the current one
	// Env is added to what child.Environ passes on of our own environment.
	Env []string
}

// Program is a process that has been started. Its methods may be called at a
// time.
type Program struct {
	cmd    *exec.Cmd
	mark   string // in the environment of all it starts
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	errors tail

	ending func()        // closes ended, once
	ended  chan struct{} // its end was asked for
	hush   func()        // closes silent, once
	silent chan struct{} // nothing more is read of its output
	gone   chan struct{}

	how   string // set before gone is closed, as is asked
	asked bool
}

// Environ returns variables as a process has them, sorted.
func Environ(variables map[string]string) (environ []string) {
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		environ = append(environ, name+"="+variables[name])
	}
	return environ
}

// Start starts a program. The error is the bare cause, without the program's
// path: the sentence that the caller makes of it names the program in its own
// way. It is exec.ErrNotFound or os.ErrNotExist, as errors.Is sees it, where
// there is no such program or no such folder.
func Start(o Options) (*Program, error) {
	if len(o.Command) == 0 {
		return nil, errors.New("no command is given")
	}
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	cmd.Dir = o.Dir
	mark := markName + "=" + rand.Text()
	cmd.Env = append(append(child.Environ(os.Environ()), o.Env...), mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &Program{cmd: cmd, mark: mark, ended: make(chan struct{}), silent: make(chan struct{}), gone: make(chan struct{})}
	p.ending = sync.OnceFunc(func() { close(p.ended) })
	p.hush = sync.OnceFunc(func() { close(p.silent) })
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

// bare is the cause without the path.
func bare(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	if f, ok := errors.AsType[*exec.Error](err); ok {
		return f.Err
	}
	return err
}

// pipes makes the three, and returns the child's ends. They are made here
// because those of os/exec have Wait and a reader race for the last words.
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
		_ = f.Close() // one that was not made is nil, which is an error
	}
}

// Read reads its standard output. It fails with io.EOF where that has ended,
// and a moment after the process has ended, whatever process still holds it open.
func (p *Program) Read(b []byte) (int, error) { return p.stdout.Read(b) }

// Write writes to its standard input, and waits for a program that does not
// read. It fails where End has been called or the process has ended.
func (p *Program) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// Silent notes that its output has ended, or will not be read any further.
// Its reader has to call this when it has made use of all it has read: a
// process that ends by itself is gone only then. One that goes on is ended
// after half a second, because it cannot be reached any more.
func (p *Program) Silent() { p.hush() }

// End begins its end, and does not wait for it: its input is closed, and its
// group gets SIGTERM and, two seconds later, SIGKILL. What has left the group is
// killed after that.
func (p *Program) End() { p.ending() }

// Gone is closed when nothing is left of it.
func (p *Program) Gone() <-chan struct{} { return p.gone }

// Close ends it, and waits until nothing is left of it.
func (p *Program) Close() {
	p.End()
	<-p.gone
}

// How waits until it is gone and says how the process ended, such as "exit
// status 0" or "signal: killed", and whether it was ended from here: by End, or
// for its silence.
func (p *Program) How() (how string, asked bool) {
	<-p.gone
	return p.how, p.asked
}

// Stderr is the last of what it has written on standard error, MostStderr bytes at
// the most. It is as the program wrote it: there may be keys in it.
func (p *Program) Stderr() string { return p.errors.String() }

// watch sees the process to its end.
func (p *Program) watch() {
	exited, complained := make(chan error, 1), make(chan struct{})
	go func() { p.errors.read(p.stderr); close(complained) }()
	go func() { exited <- p.cmd.Wait() }()
	go func() {
		defer close(p.gone)
		err, asked := p.leave(exited)
		// What is in the pipes is still read. A process that left the group may
		// hold them open for good, so only for a moment.
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

// leave waits until the process has ended, and ends it where that is asked for:
// by closing its input and SIGTERM, and then SIGKILL. What is left of its group
// is killed in any case, and so are its children's children that have left it.
func (p *Program) leave(exited <-chan error) (err error, asked bool) {
	group := -p.cmd.Process.Pid
	var others []*os.Process // which have left the group
	defer func() { _ = syscall.Kill(group, syscall.SIGKILL); killAll(others) }()
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
	others = hold(descendants(p.cmd.Process.Pid))
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
