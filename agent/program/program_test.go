package program_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/agent/program"
	"perch/must"
	"perch/waittest"

	"go.uber.org/goleak"
)

// role is the name of an environment variable. If it is set, the test binary runs no tests: it calls
// play with the value.
const role = "A_TEST_IS_A_PROGRAM"

func TestMain(m *testing.M) {
	if is := os.Getenv(role); is != "" {
		play(is)
		return
	}
	goleak.VerifyTestMain(m)
}

// play runs the program that the tests start. steps are separated by semicolons; a step is a verb
// and, after a space, the number that some verbs need.
func play(steps string) {
	for step := range strings.SplitSeq(steps, ";") {
		verb, rest, _ := strings.Cut(step, " ")
		n, _ := strconv.Atoi(rest)
		switch verb {
		case "echo":
			_, _ = io.Copy(os.Stdout, os.Stdin)
		case "environment":
			fmt.Println(strings.Join(os.Environ(), "\n"))
		case "folder":
			dir, _ := os.Getwd()
			fmt.Println(dir)
		case "shout":
			fmt.Print(strings.Repeat("x", n) + "\n")
		case "complain":
			fmt.Fprint(os.Stderr, strings.Repeat("half a key\n", n)+"last words\xff\n")
		case "drone":
			fmt.Fprint(os.Stderr, strings.Repeat("x", n))
		case "child", "stranger": // a process that holds the pipes open; a stranger is in a session of its own
			cmd := exec.Command("sleep", "300")
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: verb == "stranger"}
			_ = cmd.Start()
			fmt.Println(cmd.Process.Pid)
		case "daemon": // a process in a session of its own, whose parents have ended
			cmd := exec.Command("setsid", "sh", "-c", "setsid sh -c 'echo $$; exec sleep 300' & exit")
			cmd.Stdout = os.Stdout
			_ = cmd.Run()
		case "bare": // a process in a session of its own, without the mark in its environment
			cmd := exec.Command("sleep", "300")
			cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			_ = cmd.Start()
			fmt.Println(cmd.Process.Pid)
		case "brood": // a process that starts another every 10 ms, each in a session of its own
			cmd := exec.Command("setsid", "sh", "-c", "echo $$; while true; do setsid sleep 300 & sleep 0.01; done")
			cmd.Stdout = os.Stdout
			_ = cmd.Start()
		case "late": // a process that writes to the standard error when the program has ended
			cmd := exec.Command("sh", "-c", "echo up; while kill -0 $PPID 2>/dev/null; do :; done; echo late >&2")
			cmd.Stderr = os.Stderr
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			up, _ := cmd.StdoutPipe()
			_ = cmd.Start()
			_, _ = up.Read(make([]byte, 1))
		case "stubborn":
			signal.Ignore(syscall.SIGTERM)
			fmt.Println(os.Getpid())
		case "shut":
			_ = os.Stdout.Close()
		case "polite": // ignores SIGTERM, and ends when its input ends
			signal.Ignore(syscall.SIGTERM)
			fmt.Println("up")
			_, _ = io.Copy(io.Discard, os.Stdin)
			fmt.Fprintln(os.Stderr, "good-bye")
		case "sleep":
			time.Sleep(time.Minute)
		case "crash":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "exit":
			os.Exit(n)
		}
	}
}

// start starts the test binary with steps for play, and stops it at the end of the test.
func start(t *testing.T, steps string, env ...string) *program.Program {
	t.Helper()
	return startIn(t, "", steps, env...)
}

func startIn(t *testing.T, dir, steps string, env ...string) *program.Program {
	t.Helper()
	exe := must.Value(os.Executable())(t)
	p, err := program.Start(program.Options{Command: []string{exe}, Dir: dir, Env: append(env, role+"="+steps)})
	must.Succeed(t, err)
	t.Cleanup(p.Close)
	return p
}

// all reads the program's output to its end, calls EndRead and returns the output.
func all(t *testing.T, p *program.Program) string {
	t.Helper()
	said, err := io.ReadAll(p)
	p.EndRead()
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	return string(said)
}

// line returns the next line of p's output. pid is the line's number, which is a process ID, or 0 if
// the line is no number.
func line(t *testing.T, p io.Reader) (text string, pid int) {
	t.Helper()
	text, err := bufio.NewReader(p).ReadString('\n')
	must.Succeed(t, err)
	text = strings.TrimSpace(text)
	pid, _ = strconv.Atoi(text)
	return text, pid
}

// ended waits for the end of p. The test fails unless the exit status is want and the package has
// stopped the program (byUs) or not.
func ended(t *testing.T, p *program.Program, want string, byUs bool) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("it is still there")
	}
	if how, asked := p.ExitStatus(); how != want || asked != byUs {
		t.Errorf("it ended with %q, asked for: %v", how, asked)
	}
}

// dead reports whether a process ends within 3 seconds.
func dead(pid int) bool {
	return waittest.Until(3*time.Second, func() bool { return waittest.Dead(pid) })
}

func TestReadAndWrite(t *testing.T) {
	p := start(t, "echo")
	for _, word := range []string{"one", "two"} {
		_, err := io.WriteString(p, word+"\n")
		must.Succeed(t, err)
		if got, _ := line(t, p); got != word {
			t.Errorf("it says %q", got)
		}
	}
	p.Close()
	if _, err := io.WriteString(p, "three"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("writing to it when it is gone ends with %v", err)
	}
	if _, err := p.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("reading of it when it is gone ends with %v", err)
	}
}

func TestTheEnvironment(t *testing.T) {
	ours := []string{"PERCH_KEY", "PERCH_", "LISTEN_FDS", "WATCHDOG_USEC", "NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY", "INVOCATION_ID",
		"JOURNAL_STREAM", "VTUBER_AUTH_KEY", "SUPERVISOR_TOKEN", "SUPERVISOR_API", "HASSIO_TOKEN"}
	for _, name := range ours {
		t.Setenv(name, "canary")
	}
	t.Setenv("PERCHED", "kept")
	t.Setenv("NOTIFY_SOCKETS", "kept")
	got := all(t, start(t, "environment", "GIVEN=yes", "PERCH_GIVEN=on purpose"))
	for _, want := range []string{"PERCHED=kept", "NOTIFY_SOCKETS=kept", "GIVEN=yes", "PERCH_GIVEN=on purpose", "PATH="} {
		if !strings.Contains("\n"+got, "\n"+want) {
			t.Errorf("%s is not passed on", want)
		}
	}
	if strings.Count("\n"+got, "\nSTARTED_BY_PERCH=") != 1 {
		t.Error("what it starts cannot be found")
	}
	for _, name := range ours {
		if strings.Contains("\n"+got, "\n"+name+"=") {
			t.Errorf("%s is passed on", name)
		}
	}
}

func TestTheFolder(t *testing.T) {
	dir := must.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	if got := strings.TrimSpace(all(t, startIn(t, dir, "folder"))); got != dir {
		t.Errorf("it works in %s, not %s", got, dir)
	}
}

func TestExitStatus(t *testing.T) {
	for steps, want := range map[string]string{
		"exit 0": "exit status 0", "exit 3": "exit status 3", "crash": "signal: killed",
		"shut;exit 4":      "exit status 4", // the process closes its output before it exits
		"child;exit 5":     "exit status 5",
		"stranger;exit 6":  "exit status 6",
		"complain 1;crash": "signal: killed",
	} {
		t.Run(steps, func(t *testing.T) {
			p := start(t, steps)
			said := all(t, p)
			ended(t, p, want, false)
			if pid, err := strconv.Atoi(strings.TrimSpace(said)); err == nil && !dead(pid) {
				t.Error("what it has started is still there")
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

// TestOutputIsReadToItsEnd checks that output written before the end of the process can still be
// read, and that Done is not closed before EndRead.
func TestOutputIsReadToItsEnd(t *testing.T) {
	p := start(t, "shout 60000;complain 1;exit 3") // the output fits into the buffer of a pipe (64 KiB)
	waittest.For(t, "it has said its last words", func() bool { return strings.Contains(p.Stderr(), "last words") })
	if got := len(all(t, p)); got != 60001 {
		t.Errorf("%d bytes are heard", got)
	}
	ended(t, p, "exit status 3", false)

	p = start(t, "exit 3")
	select {
	case <-p.Done():
		t.Error("it is gone before it is heard")
	case <-time.After(100 * time.Millisecond):
	}
	p.EndRead()
	ended(t, p, "exit status 3", false)
}

func TestStderr(t *testing.T) {
	for steps, want := range map[string]string{
		"exit 0":     "",
		"late":       "late\n",
		"complain 2": "half a key\nhalf a key\nlast words\n",
		"drone 100":  strings.Repeat("x", 100),
		"drone 5000": "", // its only line is longer than MaxStderr
	} {
		p := start(t, steps)
		_ = all(t, p)
		<-p.Done()
		if got := p.Stderr(); got != want {
			t.Errorf("%s: %q", steps, got)
		}
	}
	p := start(t, "complain 9000;drone 100")
	_ = all(t, p)
	<-p.Done()
	got := p.Stderr()
	if len(got) > program.MaxStderr || len(got) < program.MaxStderr-20 || !strings.HasPrefix(got, "half a key\nhalf") ||
		!strings.HasSuffix(got, "key\nlast words\n"+strings.Repeat("x", 100)) {
		t.Errorf("%d bytes are kept: %q", len(got), got)
	}
}

func TestClose(t *testing.T) {
	t.Run("one that ends with its input", func(t *testing.T) {
		p := start(t, "polite")
		line(t, p)
		p.Close()
		p.Close()
		ended(t, p, "exit status 0", true)
		if got := p.Stderr(); got != "good-bye\n" {
			t.Errorf("its last words are %q", got)
		}
	})
	t.Run("one that sleeps", func(t *testing.T) {
		p := start(t, "sleep")
		p.Close()
		ended(t, p, "signal: terminated", true)
	})
	t.Run("one that ignores SIGTERM, with a child", func(t *testing.T) {
		t.Parallel()
		p := start(t, "child;stubborn;sleep")
		said := bufio.NewReader(p)
		_, child := line(t, said)
		_, own := line(t, said)
		p.Close() // without SIGKILL it would return only after the sleeps have ended
		ended(t, p, "signal: killed", true)
		if child == 0 || own == 0 || !dead(child) || !dead(own) {
			t.Errorf("%d or %d is still there", child, own)
		}
	})
	t.Run("one that does not read", func(t *testing.T) {
		p := start(t, "sleep")
		wrote := make(chan error, 1)
		go func() {
			_, err := p.Write(make([]byte, 1<<20))
			wrote <- err
		}()
		p.Close()
		if err := <-wrote; err == nil {
			t.Error("a megabyte was written")
		}
	})
}

// TestDescendantsAreKilled checks that the processes that a program has started are killed when the
// program is closed or has exited, even if they have left its process group, and that children of
// other programs are not killed.
func TestDescendantsAreKilled(t *testing.T) {
	t.Parallel()
	other := start(t, "stranger;sleep")
	_, bystander := line(t, other)
	for _, steps := range []string{"stranger;sleep", "daemon;sleep", "bare;sleep", "brood;sleep", "daemon;stubborn;sleep", "daemon;exit 0"} {
		t.Run(steps, func(t *testing.T) {
			p := start(t, steps)
			_, pid := line(t, p)
			if pid == 0 {
				t.Fatal("nothing was started")
			}
			go func() { _, _ = io.Copy(io.Discard, p); p.EndRead() }()
			if !strings.HasSuffix(steps, "exit 0") {
				p.Close()
			}
			select {
			case <-p.Done():
			case <-time.After(20 * time.Second):
				t.Fatal("it is still there")
			}
			if !dead(pid) {
				t.Errorf("%d is still there", pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
	if err := syscall.Kill(bystander, 0); err != nil {
		t.Errorf("another program's child was ended as well: %v", err)
	}
	other.Close()
	if !dead(bystander) {
		t.Error("the last is still there")
	}
}

// TestClosedOutputEndsTheProcess checks that a process that closes its output but does not exit is
// stopped after EndRead.
func TestClosedOutputEndsTheProcess(t *testing.T) {
	p := start(t, "shut;sleep")
	if got := all(t, p); got != "" {
		t.Errorf("it says %q", got)
	}
	ended(t, p, "signal: terminated", true)
	p.EndRead()
	p.Terminate()
}

func TestStartFailures(t *testing.T) {
	text := filepath.Join(t.TempDir(), "notes.txt")
	must.Succeed(t, os.WriteFile(text, []byte("notes"), 0o600))
	before := pipes()
	for name, c := range map[string]struct {
		o     program.Options
		is    error
		words string
	}{
		"no command":   {program.Options{}, nil, "no command is given"},
		"no program":   {program.Options{Command: []string{"no-such-program", "canary"}}, exec.ErrNotFound, "executable file not found in $PATH"},
		"no such path": {program.Options{Command: []string{"/no/such/program"}}, os.ErrNotExist, "no such file or directory"},
		"no folder":    {program.Options{Command: []string{"/bin/sh"}, Dir: "/no/such/folder"}, os.ErrNotExist, "no such file or directory"},
		"a text":       {program.Options{Command: []string{text}}, os.ErrPermission, "permission denied"},
	} {
		p, err := program.Start(c.o)
		if p != nil || err == nil || err.Error() != c.words || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 5 { // a program that has been closed leaves no pipe open
		start(t, "sleep").Close()
	}
	if after := pipes(); after != before {
		t.Errorf("%d pipes became %d", before, after)
	}
}

// pipes returns how many ends of pipes this process has open.
func pipes() (n int) {
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		if to, _ := os.Readlink(link); strings.HasPrefix(to, "pipe:") {
			n++
		}
	}
	return n
}
