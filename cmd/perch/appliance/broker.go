package appliance

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

	"perch/gateway/broker"
)

// BrokerCommand is how this program is started as the embedded MQTT broker's
// process. It is for itself alone, and in no list of commands.
const BrokerCommand = "mqtt-broker"

// Bounds of that process. It serves one home, and what it is sent must not
// take memory or files from conversations.
const (
	brokerMemory  = 160 << 20       // which its garbage collector tries to stay within
	brokerMore    = 256 << 20       // and what it can have beyond what it starts with
	brokerGarbage = 50              // percent of what it holds: the library copies all retained messages each second
	brokerFiles   = 512             // open at a time
	BrokerVictim  = 500             // of 1000: whom the kernel ends first when memory is short
	brokerLeaveIn = 3 * time.Second // once its input has ended

	listenerFile = 3 // the first file after the three that every process has
)

// brokerOrders are what the child reads on its standard input, in one line.
// When that input ends, so does the child.
type brokerOrders struct {
	User     string `json:"user"`
	Password string `json:"password"`
	Base     string `json:"base"`
	Keeper   string `json:"keeper"`
}

// serveBroker runs the embedded broker as a process of its own until ctx ends,
// or the process does.
func serveBroker(base, keeper string, log *slog.Logger) func(ctx context.Context, l *net.TCPListener, user, password string) error {
	return func(ctx context.Context, l *net.TCPListener, user, password string) error {
		orders, err := json.Marshal(brokerOrders{user, password, base, keeper})
		if err != nil {
			return fmt.Errorf("write its orders: %w", err)
		}
		shared, err := l.File()
		if err != nil {
			return fmt.Errorf("share the listener: %w", err)
		}
		defer shared.Close()
		said := &childLog{log: log}
		cmd := exec.CommandContext(ctx, "/proc/self/exe", BrokerCommand) // this very program, also where an upgrade has put another in its place
		cmd.Args[0] = "perch"
		cmd.Dir, cmd.Env, cmd.ExtraFiles, cmd.Stderr = "/", brokerEnvironment(), []*os.File{shared}, said
		// A group of its own, so that what a terminal sends to ours is not sent to
		// it, and the same end: it may not outlive us by a moment.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return fmt.Errorf("make its input: %w", err)
		}
		cmd.Cancel, cmd.WaitDelay = stdin.Close, brokerLeaveIn
		ended := make(chan error, 1)
		go func() {
			// The kernel ends the child with the thread that has started it, and the
			// child has no more privileges than that thread can get. So the thread is
			// for nothing else, and ends with this goroutine.
			runtime.LockOSThread()
			noNewPrivileges()
			ended <- cmd.Run()
		}()
		_, _ = stdin.Write(append(orders, '\n')) // a child that does not read them has ended, which is seen below
		switch err := <-ended; {
		case cmd.Process == nil:
			return fmt.Errorf("start it: %w", err)
		case ctx.Err() != nil:
			return nil
		default:
			return errors.New(cmp.Or(said.why, errorText(err), "exit status 0"))
		}
	}
}

// brokerEnvironment is what the child needs of ours: where libraries are.
func brokerEnvironment() []string {
	env := []string{"GOTRACEBACK=single"}
	if path := os.Getenv("LD_LIBRARY_PATH"); path != "" {
		env = append(env, "LD_LIBRARY_PATH="+path)
	}
	return env
}

// noNewPrivileges has this thread, and what is started from it, gain nothing by
// the programs it runs. Where the kernel does not know that, nothing is lost:
// the child runs no programs.
func noNewPrivileges() {
	const prSetNoNewPrivs = 38
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0)
}

// Bounds of what is kept of the child's words, in bytes.
const (
	mostLine  = 500
	mostWords = 64 << 10
)

// childLog is the child's standard error. Its lines are passed on as detail,
// and the one with the cause of its end is kept.
type childLog struct {
	log  *slog.Logger
	line []byte
	read int
	why  string
}

// Write takes the child's output. It is called from one goroutine, which has
// ended when the child has.
func (w *childLog) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		w.line = append(w.line, line[:min(len(line), mostLine-min(len(w.line), mostLine))]...)
		if rest = after; whole {
			w.note(string(w.line))
			w.line = w.line[:0]
		}
	}
	return len(p), nil
}

func (w *childLog) note(line string) {
	line = strings.TrimSpace(strings.ToValidUTF8(line, ""))
	fatal := strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "perch "+BrokerCommand+": ")
	if fatal && w.why == "" {
		w.why = line[:min(len(line), 200)]
	}
	if w.read += len(line); w.read <= mostWords || fatal {
		w.log.Debug("output of the embedded MQTT broker", "stderr", line)
	}
}

// RunBroker is the child: the broker, until its standard input ends.
func RunBroker(in io.Reader, errs io.Writer) error {
	var o brokerOrders
	if err := json.NewDecoder(io.LimitReader(in, 4<<10)).Decode(&o); err != nil {
		return fmt.Errorf("read the orders: %w; this command is for perch serve alone", err)
	}
	shared := os.NewFile(listenerFile, "listener")
	l, err := net.FileListener(shared)
	if err != nil {
		return fmt.Errorf("take over the listener: %w; this command is for perch serve alone", err)
	}
	_ = shared.Close() // l has its own
	log := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: bare}))
	confine(log)
	for _, after := range []time.Duration{restAfterStart, restAfterStart + restAfter} { // as the parent does, which by then has announced all
		defer time.AfterFunc(after, func() { giveBack(log) }).Stop()
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the parent has ended, or wants this to end
		stop()
	}()
	return broker.Run(ctx, l, broker.Options{User: o.User, Password: o.Password, Base: o.Base, ClientPrefix: o.Keeper, Log: log})
}

// bare leaves time and level out of a line, for a reader that adds them. It is a
// ReplaceAttr of slog's handlers.
func bare(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}

// confine bounds what this process can take. What a system does not allow is
// left: each of these is one more wall, and none is the only one.
func confine(log *slog.Logger) {
	debug.SetMemoryLimit(brokerMemory)
	debug.SetGCPercent(brokerGarbage)
	err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(BrokerVictim)), 0)
	limits := map[int]uint64{syscall.RLIMIT_FSIZE: 0, syscall.RLIMIT_CORE: 0, syscall.RLIMIT_NOFILE: brokerFiles}
	if now, known := dataSize(); known {
		limits[syscall.RLIMIT_DATA] = now + brokerMore
	}
	for which, most := range limits {
		err = errors.Join(err, syscall.Setrlimit(which, &syscall.Rlimit{Cur: most, Max: most}))
	}
	if err != nil {
		log.Debug("not every limit of the broker's process could be set", "err", err)
	}
}

// dataSize is what this process has of writable memory of its own, which is
// what RLIMIT_DATA counts.
func dataSize() (bytes uint64, known bool) {
	text, _ := os.ReadFile("/proc/self/statm") // without it there are no numbers
	var other, pages uint64
	_, err := fmt.Sscan(string(text), &other, &other, &other, &other, &other, &pages) // the sixth is data and stack
	return pages * uint64(os.Getpagesize()), err == nil
}
