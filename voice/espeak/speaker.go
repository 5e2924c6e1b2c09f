package espeak

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"perch/limit"
	"perch/voice"
	"perch/voice/program"
)

const (
	restAfter   = 2 * time.Minute  // without a text until the process ends
	readyWithin = 20 * time.Second // to start
	pieceWithin = 5 * time.Second  // for the next piece of sound, since other texts wait
)

// number encodes a number for the pipe.
func number(n int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }

// speaker runs a process that synthesizes one text after the other. That is a tenth of the
// work of a process per text, which would load the library and its voices each time. It is
// started when needed and ended after a while without use.
type speaker struct {
	command []string
	// turn holds a value while the process is free. Its receiver may use the other fields.
	turn    chan struct{}
	process *process // nil while not running
	rest    *time.Timer
	closed  bool
}

// process is a running child process.
type process struct {
	cmd       *exec.Cmd
	in        io.Writer
	out       *bufio.Reader
	rate      int // of its sound, in Hz
	bytes     [limit.Body]byte
	complaint program.Complaint
}

func newSpeaker(command []string) *speaker {
	s := &speaker{command: command, turn: make(chan struct{}, 1)}
	s.rest = time.AfterFunc(restAfter, s.endIdle)
	s.rest.Stop()
	s.turn <- struct{}{}
	return s
}

// speak calls out with pieces of mono sound and their rate in Hz. The process synthesizes as
// fast as it can however slow out is, so that the next text need not wait for the listener
// of this one. The remaining sound of a cancelled text is read and dropped.
func (s *speaker) speak(ctx context.Context, r request, out func(rate int, pcm []int16) error) error {
	p, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	// Room for the longest speech, so that the process is never blocked.
	pieces := make(chan []int16, 1+voice.LongestSpeech(r.Text)/(50*time.Millisecond))
	var spoken error
	go func() {
		defer close(pieces)
		spoken = s.ask(p, r, pieces)
		s.release(spoken)
	}()
	var unheard error
	for pcm := range pieces {
		if unheard == nil {
			unheard = ctx.Err()
		}
		if unheard == nil {
			unheard = out(p.rate, pcm)
		}
	}
	if unheard != nil {
		return unheard
	}
	return spoken
}

// acquire waits until the process is free, and starts it if it is not running.
func (s *speaker) acquire(ctx context.Context) (*process, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.rest.Stop()
	if s.closed {
		s.turn <- struct{}{}
		return nil, fmt.Errorf("%w: it is closed", voice.ErrUnavailable)
	}
	if s.process == nil {
		p, err := start(s.command)
		if err != nil {
			s.turn <- struct{}{}
			return nil, err
		}
		s.process = p
	}
	return s.process, nil
}

// release lets others use the process. After an error a new one is started for the next text.
func (s *speaker) release(err error) {
	if _, refused := errors.AsType[refusal](err); err != nil && !refused {
		s.process = nil // it has ended
	} else {
		s.rest.Reset(restAfter)
	}
	s.turn <- struct{}{}
}

// endIdle ends an unused process. If it is in use, it is ended later.
func (s *speaker) endIdle() {
	select {
	case <-s.turn:
		s.stop()
		s.turn <- struct{}{}
	default:
	}
}

// close ends the process and starts no other.
func (s *speaker) close() {
	<-s.turn
	s.rest.Stop()
	s.closed = true
	s.stop()
	s.turn <- struct{}{}
}

func (s *speaker) stop() {
	if s.process != nil {
		_ = s.process.killAndWait()
		s.process = nil
	}
}

// refusal is an error for one text, after which the process can go on.
type refusal string

func (r refusal) Error() string { return "espeak-ng: " + string(r) }

// ask synthesizes one text.
func (s *speaker) ask(p *process, r request, pieces chan<- []int16) error {
	late := time.AfterFunc(pieceWithin, p.kill)
	defer late.Stop()
	err := json.NewEncoder(p.in).Encode(r)
	for err == nil {
		var pcm []int16
		if pcm, err = p.frame(); err != nil || len(pcm) == 0 {
			break
		}
		late.Reset(pieceWithin)
		select {
		case pieces <- pcm:
		default:
			_ = p.killAndWait()
			return voice.ErrEndless
		}
	}
	var why string
	if err == nil {
		why, err = p.line()
	}
	switch {
	case err != nil:
		return p.fault(err)
	case why != "":
		return refusal(why)
	}
	return nil
}

// start starts the process, and returns when it is ready.
func start(command []string) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...)}
	p.cmd.Args[0] = "perch"
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = "/", environment(), &p.complaint
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals of a terminal do not reach it
	p.cmd.WaitDelay = time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start what speaks: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: start what speaks: %w", voice.ErrUnavailable, err)
	}
	p.in, p.out = in, bufio.NewReaderSize(out, limit.Body)
	late := time.AfterFunc(readyWithin, p.kill)
	defer late.Stop()
	why := ""
	if p.rate, err = p.number(); err == nil && p.rate == 0 {
		why, err = p.line()
	}
	switch {
	case err != nil:
		return nil, p.fault(err)
	case !voice.Playable(p.rate):
		_ = p.killAndWait()
		return nil, fmt.Errorf("%w: espeak-ng: %s; apt install espeak-ng", voice.ErrUnavailable, why)
	}
	return p, nil
}

// environment returns the variables that the process needs to find the library and its data.
func environment() []string {
	env := []string{"GOTRACEBACK=single", "GOMAXPROCS=1"}
	for _, name := range []string{"LD_LIBRARY_PATH", "ESPEAK_DATA_PATH"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// number reads a number.
func (p *process) number() (int, error) {
	var b [4]byte
	_, err := io.ReadFull(p.out, b[:])
	return int(binary.NativeEndian.Uint32(b[:])), err
}

// frame reads a piece of sound, or nil after the last.
func (p *process) frame() ([]int16, error) {
	size, err := p.number()
	if err != nil {
		return nil, err
	}
	if size > limit.Body || size%2 != 0 {
		return nil, fmt.Errorf("a piece of sound of %d bytes", size)
	}
	if _, err := io.ReadFull(p.out, p.bytes[:size]); err != nil {
		return nil, err
	}
	pcm := make([]int16, size/2)
	for i := range pcm {
		pcm[i] = int16(binary.NativeEndian.Uint16(p.bytes[2*i:]))
	}
	return pcm, nil
}

// line reads an error message.
func (p *process) line() (string, error) {
	text, err := p.out.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = errors.New("a line without an end")
	}
	return strings.TrimSpace(string(text)), err
}

// kill kills the process and its children, from any goroutine; a pending read then ends.
func (p *process) kill() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

// killAndWait kills the process and waits for it.
func (p *process) killAndWait() error {
	p.kill()
	return p.cmd.Wait()
}

// fault returns why the process ended. If it closed its output, it exits by itself.
func (p *process) fault(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		_ = p.killAndWait() // killed by us, which is not the cause
	} else if ended := p.cmd.Wait(); ended != nil {
		err = ended
	}
	return &program.Fault{Name: "espeak-ng", Complaint: p.complaint.String(), Err: err}
}
