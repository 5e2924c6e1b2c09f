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

	"perch/gateway/httpserver"
	"perch/idlememory"
)

// Command is the hidden command of perch that runs the broker. Process uses it to start the child process.
const Command = "mqtt-broker"

// Limits of the child process. They keep it from using up memory or files that the parent process needs.
const (
	memoryLimit    = 160 << 20       // soft memory limit of the garbage collector, in bytes
	maxExtraMemory = 256 << 20       // hard limit of the memory that is allocated after the start, in bytes
	garbageLimit   = 50              // GOGC, in per cent; low because the library copies all retained messages each second
	maxFiles       = 512             // open files
	OOMScore       = 500             // OOM score adjustment: the kernel kills the process with the highest score first
	exitTimeout    = 3 * time.Second // how long the process may take to exit after the end of its input

	listenerFile = 3 // file descriptor of the listener: the first after standard input, output and error
)

// Process returns a function that runs the broker as a child process. The function returns nil after ctx has ended, and an
// error if the child process cannot be started or exits before. Perch's topics begin with base, and the client IDs of
// Perch's connections begin with clientPrefix. The child process reads its options as one line from standard input, and
// exits at the end of this input.
func Process(base, clientPrefix string, log *slog.Logger) func(ctx context.Context, l *net.TCPListener, user, password string) error {
	return func(ctx context.Context, l *net.TCPListener, user, password string) error {
		line, err := json.Marshal(Options{User: user, Password: password, Base: base, ClientPrefix: clientPrefix})
		if err != nil {
			return fmt.Errorf("write the settings of the broker: %w", err)
		}
		shared, err := l.File()
		if err != nil {
			return fmt.Errorf("share the listener: %w", err)
		}
		defer shared.Close()
		stderr := newChildLog(log)
		cmd := exec.CommandContext(ctx, "/proc/self/exe", Command) // the running program, even if an upgrade has replaced its file
		cmd.Args[0] = "perch"
		cmd.Dir, cmd.Env, cmd.ExtraFiles, cmd.Stderr = "/", environment(), []*os.File{shared}, stderr
		// The child must not receive the terminal's signals to this process group, and must not outlive this process.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return fmt.Errorf("make the input of the broker: %w", err)
		}
		cmd.Cancel, cmd.WaitDelay = stdin.Close, exitTimeout
		ended := make(chan error, 1)
		go func() {
			// Pdeathsig kills the child when the thread that started the child ends, and the child inherits no_new_privs
			// from that thread. So this goroutine is locked to a thread, which ends with the goroutine.
			runtime.LockOSThread()
			noNewPrivileges()
			ended <- cmd.Run()
		}()
		_, _ = stdin.Write(append(line, '\n')) // fails if the child has ended, which is handled below
		switch err := <-ended; {
		case cmd.Process == nil:
			return fmt.Errorf("start the broker: %w", err)
		case ctx.Err() != nil:
			return nil
		case stderr.cause == "" && err != nil:
			return err
		default:
			return errors.New(cmp.Or(stderr.cause, "exit status 0"))
		}
	}
}

// environment returns the environment of the child process.
func environment() []string {
	env := []string{"GOTRACEBACK=single"}
	if path := os.Getenv("LD_LIBRARY_PATH"); path != "" {
		env = append(env, "LD_LIBRARY_PATH="+path)
	}
	return env
}

// noNewPrivileges prevents this thread and its children from gaining privileges by executing programs. It ignores an error,
// because the child executes no programs.
func noNewPrivileges() {
	const prSetNoNewPrivs = 38
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0)
}

// Limits on the logged output of the child process, in bytes.
const (
	maxLine   = 500
	maxOutput = 64 << 10
)

// childLog logs the standard error of the child process at debug level, and refused logins as warnings. It stores the
// fatal error that ended the process.
type childLog struct {
	log      *slog.Logger
	warnings *slog.Logger // limits how often a warning is logged
	line     []byte       // the incomplete last line
	read     int          // number of bytes in all lines so far, without refused logins
	cause    string       // the first line with a fatal error
}

func newChildLog(log *slog.Logger) *childLog {
	return &childLog{log: log, warnings: httpserver.LimitLogger(log)}
}

// Write implements io.Writer. It must not be called concurrently.
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

// logLine logs a line, and stores the line if it is the first fatal error. After maxOutput bytes, it logs only fatal
// errors and refused logins.
func (w *childLog) logLine(line string) {
	line = strings.TrimSpace(strings.ToValidUTF8(line, ""))
	if address, refused := strings.CutPrefix(line, fmt.Sprintf("msg=%q address=", wrongPassword)); refused {
		w.warnings.Warn(wrongPassword, "address", address)
		return
	}
	fatal := strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "perch "+Command+": ")
	if fatal && w.cause == "" {
		w.cause = line[:min(len(line), 200)]
	}
	if w.read += len(line); w.read <= maxOutput || fatal {
		w.log.Debug("output of the embedded MQTT broker", "stderr", line)
	}
}

// RunProcess runs the broker in the child process until the end of in, the standard input. The log is written to errs, the
// standard error.
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
	_ = shared.Close() // l has its own file descriptor
	o.Log = slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutTime}))
	confine(o.Log)
	defer idlememory.AfterStart(o.Log)()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in) // returns when the parent exits or closes the pipe
		stop()
	}()
	return Run(ctx, l, o)
}

// withoutTime is a ReplaceAttr function for slog that removes the time and the level, because the parent process adds a
// time and a level when it logs the line.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}

// confine limits the resources of this process. It skips the limits that the system does not allow.
func confine(log *slog.Logger) {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(garbageLimit)
	err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(OOMScore)), 0)
	limits := map[int]uint64{syscall.RLIMIT_FSIZE: 0, syscall.RLIMIT_CORE: 0, syscall.RLIMIT_NOFILE: maxFiles}
	if size, known := dataSize(); known {
		limits[syscall.RLIMIT_DATA] = size + maxExtraMemory
	}
	for resource, value := range limits {
		err = errors.Join(err, syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value}))
	}
	if err != nil {
		log.Debug("not every limit of the broker's process could be set", "err", err)
	}
}

// dataSize returns the size of the memory that RLIMIT_DATA limits. known is false if it cannot be read.
func dataSize() (bytes uint64, known bool) {
	text, _ := os.ReadFile("/proc/self/statm") // after an error Sscan fails
	var other, pages uint64
	_, err := fmt.Sscan(string(text), &other, &other, &other, &other, &other, &pages) // the sixth number is data and stack, in pages
	return pages * uint64(os.Getpagesize()), err == nil
}
