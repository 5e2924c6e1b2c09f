package broker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"perch/idlememory"
)

// Command is the hidden command with which this program starts itself as the broker's process.
const Command = "mqtt-broker"

// Bounds of that process. It serves one home, and must not take memory or files from conversations.
const (
	memoryLimit  = 160 << 20       // a soft limit for its garbage collector
	moreMemory   = 256 << 20       // a hard limit, beyond its memory at the start
	garbageLimit = 50              // percent (GOGC): the library copies all retained messages each second
	maxFiles     = 512             // open at a time
	OOMScore     = 500             // of 1000: the kernel ends the process with the highest score first
	exitWithin   = 3 * time.Second // after the end of its input

	listenerFile = 3 // the first file after the three that every process has
)

// Process returns a function that runs the broker as a child process until ctx ends, or the
// process does. Perch's topics begin with base, and the client ids of its connections
// with clientPrefix. The child reads its options on standard input, in one line, and ends with that input.
func Process(base, clientPrefix string, log *slog.Logger) func(ctx context.Context, l *net.TCPListener, user, password string) error {
	return func(ctx context.Context, l *net.TCPListener, user, password string) error {
		line, err := json.Marshal(Options{User: user, Password: password, Base: base, ClientPrefix: clientPrefix})
		if err != nil {
			return fmt.Errorf("write its settings: %w", err)
		}
		shared, err := l.File()
		if err != nil {
			return fmt.Errorf("share the listener: %w", err)
		}
		defer shared.Close()
		stderr := &childLog{log: log}
		cmd := exec.CommandContext(ctx, "/proc/self/exe", Command) // this program, even if an upgrade has replaced its file
		cmd.Args[0] = "perch"
		cmd.Dir, cmd.Env, cmd.ExtraFiles, cmd.Stderr = "/", environment(), []*os.File{shared}, stderr
		// A terminal's signals to our process group are not for the child, and it must end
		// with us.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return fmt.Errorf("make its input: %w", err)
		}
		cmd.Cancel, cmd.WaitDelay = stdin.Close, exitWithin
		ended := make(chan error, 1)
		go func() {
			// The kernel ends the child with the thread that started it, and the child
			// inherits the thread's lack of privileges. So the thread is used for nothing
			// else, and ends with this goroutine.
			runtime.LockOSThread()
			noNewPrivileges()
			ended <- cmd.Run()
		}()
		_, _ = stdin.Write(append(line, '\n')) // fails if the child has ended, which is handled below
		switch err := <-ended; {
		case cmd.Process == nil:
			return fmt.Errorf("start it: %w", err)
		case ctx.Err() != nil:
			return nil
		case stderr.cause == "" && err != nil:
			return err
		default:
			return errors.New(cmp.Or(stderr.cause, "exit status 0"))
		}
	}
}

// environment returns the child's environment, with our path of libraries.
func environment() []string {
	env := []string{"GOTRACEBACK=single"}
	if path := os.Getenv("LD_LIBRARY_PATH"); path != "" {
		env = append(env, "LD_LIBRARY_PATH="+path)
	}
	return env
}

// noNewPrivileges prevents this thread and its children from gaining privileges by running
// programs. An error is ignored: the child runs none.
func noNewPrivileges() {
	const prSetNoNewPrivs = 38
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0)
}

// Bounds of the child's output that is logged, in bytes.
const (
	maxLine   = 500
	maxOutput = 64 << 10
)

// childLog logs the child's standard error at debug level, and stores the line with the cause of
// its end.
type childLog struct {
	log   *slog.Logger
	line  []byte
	read  int
	cause string
}

// Write implements io.Writer. It is called from one goroutine, which ends with the child.
func (w *childLog) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		w.line = append(w.line, line[:min(len(line), maxLine-min(len(w.line), maxLine))]...)
		if rest = after; whole {
			w.logLine(string(w.line))
			w.line = w.line[:0]
		}
	}
	return len(p), nil
}

func (w *childLog) logLine(line string) {
	line = strings.TrimSpace(strings.ToValidUTF8(line, ""))
	fatal := strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "perch "+Command+": ")
	if fatal && w.cause == "" {
		w.cause = line[:min(len(line), 200)]
	}
	if w.read += len(line); w.read <= maxOutput || fatal {
		w.log.Debug("output of the embedded MQTT broker", "stderr", line)
	}
}

// RunProcess is the child process: the broker, until standard input ends.
func RunProcess(in io.Reader, errs io.Writer) error {
	var o Options
	if err := json.NewDecoder(io.LimitReader(in, 4<<10)).Decode(&o); err != nil {
		return fmt.Errorf("read the settings: %w; this command is for perch serve alone", err)
	}
	shared := os.NewFile(listenerFile, "listener")
	l, err := net.FileListener(shared)
	if err != nil {
		return fmt.Errorf("take over the listener: %w; this command is for perch serve alone", err)
	}
	_ = shared.Close() // l has its own
	o.Log = slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutTime}))
	confine(o.Log)
	defer idlememory.AfterStart(o.Log)()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the parent ends, or ends this
		stop()
	}()
	return Run(ctx, l, o)
}

// withoutTime removes time and level from a line, since the parent adds its own. It is a
// ReplaceAttr of slog's handlers.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}

// confine limits the resources of this process. A limit that the system does not allow is
// skipped: each adds to the others.
func confine(log *slog.Logger) {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(garbageLimit)
	err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(OOMScore)), 0)
	limits := map[int]uint64{syscall.RLIMIT_FSIZE: 0, syscall.RLIMIT_CORE: 0, syscall.RLIMIT_NOFILE: maxFiles}
	if now, known := dataSize(); known {
		limits[syscall.RLIMIT_DATA] = now + moreMemory
	}
	for which, most := range limits {
		err = errors.Join(err, syscall.Setrlimit(which, &syscall.Rlimit{Cur: most, Max: most}))
	}
	if err != nil {
		log.Debug("not every limit of the broker's process could be set", "err", err)
	}
}

// dataSize returns the private writable memory of this process, which RLIMIT_DATA counts.
func dataSize() (bytes uint64, known bool) {
	text, _ := os.ReadFile("/proc/self/statm") // without it there are no numbers
	var other, pages uint64
	_, err := fmt.Sscan(string(text), &other, &other, &other, &other, &other, &pages) // the sixth is data and stack
	return pages * uint64(os.Getpagesize()), err == nil
}
