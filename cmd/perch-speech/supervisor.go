package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"perch/cmd/perch-speech/models"
)

// enginesName is the hidden command that runs the engines.
const enginesName = "engines"

// Files that the engines inherit.
const (
	listenerFile = 3 + iota
	loadingFile  // pipe; the engines write the names of the models that they load; see loader
)

const (
	maxPause    = 30 * time.Second // maximum time before the engines are started again
	goodRun     = time.Minute      // engines that ran longer are started again at once
	exitTimeout = 5 * time.Second  // time for the engines to exit after SIGTERM, before they are killed
)

// supervisor runs the engines as a child process: sherpa-onnx ends its process when it cannot use a file, and may crash. The
// listener stays open in this process, so that clients wait for the next child instead of being refused.
type supervisor struct {
	folder   models.Folder
	threads  int
	listener *net.TCPListener
	stderr   io.Writer
	log      *slog.Logger
	// offersSlow says whether recognizers are offered that are too slow.
	offersSlow bool
}

// run runs the engines until ctx ends, and starts them again when they end. A model that ended them while it was loaded is
// left out until they have run for goodRun and end again.
func (s supervisor) run(ctx context.Context) {
	var broken []string
	for pause := time.Duration(0); ; {
		began := time.Now()
		loading, err := s.runEngines(ctx, broken)
		if ctx.Err() != nil {
			return
		}
		if loading != "" {
			s.log.Error("a model ended the engines while it was loaded; they are started again without it", "model", loading, "err", err)
			broken = append(broken, loading)
			continue
		}
		s.log.Error("the engines ended and are started again; what was being said is lost", "err", err)
		if time.Since(began) > goodRun {
			pause, broken = 0, nil // the owner may have mended them
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause+time.Second, maxPause)
	}
}

// runEngines runs the engines once, without broken models. It returns the name of the model that was being loaded when they
// ended, or "".
func (s supervisor) runEngines(ctx context.Context, broken []string) (loading string, err error) {
	shared, err := s.listener.File()
	if err != nil {
		return "", fmt.Errorf("share the listener: %w", err)
	}
	defer shared.Close()
	names, report, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("make a pipe for the engines: %w", err)
	}
	defer names.Close()
	args := []string{enginesName, "--models", string(s.folder), "--threads", strconv.Itoa(s.threads)}
	if s.offersSlow {
		args = append(args, "--slow")
	}
	for _, name := range broken {
		args = append(args, "--without", name)
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...) // the running program, even if an upgrade has replaced its file
	cmd.Args[0] = "perch-speech"
	cmd.ExtraFiles, cmd.Stderr = []*os.File{shared, report}, s.stderr
	// The child must not receive the terminal's signals to this process group, and must not outlive this process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, exitTimeout
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig kills the child when the thread that started it ends, which is at the end of this goroutine
		err := cmd.Run()
		report.Close()
		ended <- err
	}()
	for lines := bufio.NewScanner(names); lines.Scan(); {
		loading = lines.Text()
	}
	return loading, <-ended
}
