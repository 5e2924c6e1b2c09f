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
	restAfter   = 2 * time.Minute  // without a text, the process ends
	readyWithin = 20 * time.Second // it can speak
	pieceWithin = 5 * time.Second  // its next piece of sound is there, for which all others wait, too
)

// number is how a number is written between the processes.
func number(n int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }

// speaker has a process of its own that speaks one text after the other, which is a tenth
// of the work of a new one for each: those would load the library and its voices again. It
// is started when it is needed and ended when it has not been needed for a while.
type speaker struct {
	command []string
	// turn holds a value while nobody talks to the process. Who took it may use the rest.
	turn    chan struct{}
	process *process // nil is none
	rest    *time.Timer
	closed  bool
}

// process is one that runs.
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
	s.rest = time.AfterFunc(restAfter, s.end)
	s.rest.Stop()
	s.turn <- struct{}{}
	return s
}

// speak calls out with pieces of sound, mono at the rate in Hz. It has the process speak as
// fast as that can, whatever time out takes, so that the next text need not wait for who
// listens to this one. A cancelled text is spoken to its end, which is near, to nobody.
func (s *speaker) speak(ctx context.Context, r request, out func(rate int, pcm []int16) error) error {
	p, err := s.take(ctx)
	if err != nil {
		return err
	}
	// Room for the longest speech, so that the process is never waited with.
	pieces := make(chan []int16, 1+voice.LongestSpeech(r.Text)/(50*time.Millisecond))
	var spoken error
	go func() {
		defer close(pieces)
		spoken = s.ask(p, r, pieces)
		s.give(spoken)
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

// take waits for the process to be free, and starts it where it does not run.
func (s *speaker) take(ctx context.Context) (*process, error) {
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

// give lets the next have the process. After an error there is another one then.
func (s *speaker) give(err error) {
	if _, refused := errors.AsType[refusal](err); err != nil && !refused {
		s.process = nil // which has ended
	} else {
		s.rest.Reset(restAfter)
	}
	s.turn <- struct{}{}
}

// end ends a process that nobody needs. Where one is talked to, that has it end later.
func (s *speaker) end() {
	select {
	case <-s.turn:
		s.stop()
		s.turn <- struct{}{}
	default:
	}
}

// close ends it for good.
func (s *speaker) close() {
	<-s.turn
	s.rest.Stop()
	s.closed = true
	s.stop()
	s.turn <- struct{}{}
}

func (s *speaker) stop() {
	if s.process != nil {
		_ = s.process.end()
		s.process = nil
	}
}

// refusal is why the process has not spoken a text, and will speak the next.
type refusal string

func (r refusal) Error() string { return "espeak-ng: " + string(r) }

// ask has one text spoken.
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
			_ = p.end()
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

// start runs the process, and returns when it can speak.
func start(command []string) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...)}
	p.cmd.Args[0] = "perch"
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = "/", environment(), &p.complaint
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what a terminal sends to ours is not sent to it
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
		_ = p.end()
		return nil, fmt.Errorf("%w: espeak-ng: %s; apt install espeak-ng", voice.ErrUnavailable, why)
	}
	return p, nil
}

// environment is what the process needs of ours: where the library and its data are.
func environment() []string {
	env := []string{"GOTRACEBACK=single", "GOMAXPROCS=1"}
	for _, name := range []string{"LD_LIBRARY_PATH", "ESPEAK_DATA_PATH"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// number reads one.
func (p *process) number() (int, error) {
	var b [4]byte
	_, err := io.ReadFull(p.out, b[:])
	return int(binary.NativeEndian.Uint32(b[:])), err
}

// frame reads a piece of sound. The last is empty.
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

// line reads why something has failed.
func (p *process) line() (string, error) {
	text, err := p.out.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = errors.New("a line without an end")
	}
	return strings.TrimSpace(string(text)), err
}

// kill ends it, from any goroutine, with what it has started; who reads from it sees its end.
func (p *process) kill() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

// end ends it and waits until it has.
func (p *process) end() error {
	p.kill()
	return p.cmd.Wait()
}

// fault is the end of a process that was to speak. One that closes its output ends by itself.
func (p *process) fault(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		_ = p.end() // by us, which is not why
	} else if ended := p.cmd.Wait(); ended != nil {
		err = ended
	}
	return &program.Fault{Name: "espeak-ng", Complaint: p.complaint.String(), Err: err}
}
