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
	maxIdle      = 2 * time.Minute  // a process that has been idle for this time is stopped
	startTimeout = 20 * time.Second // timeout of the start of the process
	soundTimeout = 5 * time.Second  // timeout of the next piece of sound
)

// encodeNumber encodes a number for the pipe.
func encodeNumber(n int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }

// speaker runs a process that synthesizes texts, one after the other. A process per text
// would take ten times as long, because each would load the library and the voice. The
// process is started when it is needed, and stopped when it is idle for maxIdle.
type speaker struct {
	command []string
	// lock guards the following fields. It has capacity 1 and holds an element while it is
	// unlocked: to lock is to receive, and to unlock is to send.
	lock      chan struct{}
	process   *process    // nil if none runs
	idleTimer *time.Timer // calls stopIdle
	closed    bool
}

// process is a running child process.
type process struct {
	cmd    *exec.Cmd
	in     io.Writer
	out    *bufio.Reader
	rate   int              // sample rate in Hz
	buf    [limit.Body]byte // buffer for a frame
	stderr program.Stderr
}

// newSpeaker returns a speaker without a process.
func newSpeaker(command []string) *speaker {
	s := &speaker{command: command, lock: make(chan struct{}, 1)}
	s.idleTimer = time.AfterFunc(maxIdle, s.stopIdle)
	s.idleTimer.Stop()
	s.lock <- struct{}{}
	return s
}

// speak synthesizes a text, and calls out with pieces of mono sound and their rate in Hz. The
// sound is read from the process as fast as possible and buffered, so that the process is
// free for the next text even if out is slow. If ctx ends or out fails, the other pieces are
// dropped.
func (s *speaker) speak(ctx context.Context, r request, out func(rate int, pcm []int16) error) error {
	p, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	// The buffer has room for the longest possible speech in pieces of 50 ms.
	pieces := make(chan []int16, 1+voice.MaxSpeech(r.Text)/(50*time.Millisecond))
	var synthesizeErr error
	go func() {
		defer close(pieces)
		synthesizeErr = p.synthesize(r, pieces)
		s.release(synthesizeErr)
	}()
	var outErr error
	for pcm := range pieces {
		if outErr == nil {
			outErr = ctx.Err()
		}
		if outErr == nil {
			outErr = out(p.rate, pcm)
		}
	}
	if outErr != nil {
		return outErr
	}
	return synthesizeErr
}

// acquire waits until the process is free, and starts the process if it is not running. The caller
// must call release.
func (s *speaker) acquire(ctx context.Context) (*process, error) {
	select {
	case <-s.lock:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.idleTimer.Stop()
	if s.closed {
		s.lock <- struct{}{}
		return nil, fmt.Errorf("%w: it is closed", voice.ErrUnavailable)
	}
	if s.process == nil {
		p, err := startProcess(s.command)
		if err != nil {
			s.lock <- struct{}{}
			return nil, err
		}
		s.process = p
	}
	return s.process, nil
}

// release lets other callers use the process. err is the error of process.synthesize, or nil.
func (s *speaker) release(err error) {
	if _, ok := errors.AsType[textError](err); err != nil && !ok {
		s.process = nil // the process has ended
	} else {
		s.idleTimer.Reset(maxIdle)
	}
	s.lock <- struct{}{}
}

// stopIdle stops the process unless it is in use.
func (s *speaker) stopIdle() {
	select {
	case <-s.lock:
		s.stop()
		s.lock <- struct{}{}
	default:
	}
}

// close waits until the process is free and stops it. Afterwards acquire fails.
func (s *speaker) close() {
	<-s.lock
	s.idleTimer.Stop()
	s.closed = true
	s.stop()
	s.lock <- struct{}{}
}

// stop stops the process, if one runs. The caller holds the lock.
func (s *speaker) stop() {
	if s.process != nil {
		_ = s.process.killAndWait()
		s.process = nil
	}
}

// textError is the message of an error that concerns a single text. The process remains usable.
type textError string

// Error returns the message.
func (e textError) Error() string { return "espeak-ng: " + string(e) }

// synthesize synthesizes a text and sends its sound to pieces. It stops the process if the
// sound does not come in time or is too long.
func (p *process) synthesize(r request, pieces chan<- []int16) error {
	timer := time.AfterFunc(soundTimeout, p.kill)
	defer timer.Stop()
	err := json.NewEncoder(p.in).Encode(r)
	for err == nil {
		var pcm []int16
		if pcm, err = p.readFrame(); err != nil || len(pcm) == 0 {
			break
		}
		timer.Reset(soundTimeout)
		select {
		case pieces <- pcm:
		default:
			_ = p.killAndWait()
			return voice.ErrEndless
		}
	}
	var message string
	if err == nil {
		message, err = p.readLine()
	}
	switch {
	case err != nil:
		return p.exitError(err)
	case message != "":
		return textError(message)
	}
	return nil
}

// startProcess starts a process, and waits until it has opened the library.
func startProcess(command []string) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...)}
	p.cmd.Args[0] = "perch"
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = "/", environment(), &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal then sends no signals to the process
	p.cmd.WaitDelay = time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start espeak-ng's process: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: start espeak-ng's process: %w", voice.ErrUnavailable, err)
	}
	p.in, p.out = in, bufio.NewReaderSize(out, limit.Body)
	timer := time.AfterFunc(startTimeout, p.kill)
	defer timer.Stop()
	message := ""
	if p.rate, err = p.readNumber(); err == nil && p.rate == 0 {
		message, err = p.readLine()
	}
	switch {
	case err != nil:
		return nil, p.exitError(err)
	case !voice.Playable(p.rate):
		_ = p.killAndWait()
		return nil, fmt.Errorf("%w: espeak-ng: %s; sudo apt install espeak-ng", voice.ErrUnavailable, message)
	}
	return p, nil
}

// environment returns the environment of the process, with the variables that it needs to
// find the library and its data.
func environment() []string {
	env := []string{"GOTRACEBACK=single", "GOMAXPROCS=1"}
	for _, name := range []string{"LD_LIBRARY_PATH", "ESPEAK_DATA_PATH"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// readNumber reads a number that encodeNumber has encoded.
func (p *process) readNumber() (int, error) {
	var b [4]byte
	_, err := io.ReadFull(p.out, b[:])
	return int(binary.NativeEndian.Uint32(b[:])), err
}

// readFrame reads a frame of sound, which is empty at the end of a text.
func (p *process) readFrame() ([]int16, error) {
	size, err := p.readNumber()
	if err != nil {
		return nil, err
	}
	if size > limit.Body || size%2 != 0 {
		return nil, fmt.Errorf("a piece of sound of %d bytes", size)
	}
	if _, err := io.ReadFull(p.out, p.buf[:size]); err != nil {
		return nil, err
	}
	pcm := make([]int16, size/2)
	for i := range pcm {
		pcm[i] = int16(binary.NativeEndian.Uint16(p.buf[2*i:]))
	}
	return pcm, nil
}

// readLine reads an error message, which may be "".
func (p *process) readLine() (string, error) {
	text, err := p.out.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = errors.New("a line without an end")
	}
	return strings.TrimSpace(string(text)), err
}

// kill kills the process and its children, which makes a running read fail. It is safe for
// concurrent use.
func (p *process) kill() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

// killAndWait kills the process and waits until it has ended.
func (p *process) killAndWait() error {
	p.kill()
	return p.cmd.Wait()
}

// exitError waits until the process has ended, and returns the error of a call. err is the error
// of the pipe. If the process has closed its output, it is about to exit, and its exit status
// explains more than err. Otherwise exitError kills the process.
func (p *process) exitError(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		_ = p.killAndWait()
	} else if exitErr := p.cmd.Wait(); exitErr != nil {
		err = exitErr
	}
	return &program.Fault{Name: "espeak-ng", Stderr: p.stderr.String(), Err: err}
}
