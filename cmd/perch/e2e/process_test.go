package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/must"
	"perch/waittest"
)

// startWithin is how long the program may take to serve.
const startWithin = 30 * time.Second

// process is the program as a process of its own.
type process struct {
	t        testing.TB
	data     string
	cmd      *exec.Cmd
	out      waittest.Buffer // what it prints
	log      waittest.Buffer
	ready    chan string
	exited   chan struct{} // closed when it has ended
	ended    error         // how, then
	client   http.Client
	profiles *profiling // nil, unless somebody wants them

	url, token string // of one that serves, and its owner's
}

// begin runs a program on free ports.
func begin(t testing.TB, binary, data string, args []string, env ...string) *process {
	t.Helper()
	profiles := newProfiling(t)
	if profiles != nil {
		env = append(env, "PERCH_DEBUG_LISTEN="+profiles.at)
	}
	p := launch(t, binary, data, append([]string{"--listen", "127.0.0.1:0", "--local", "127.0.0.1:0"}, args...), env...)
	p.profiles = profiles
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("The program's log:\n%s", &p.log)
		}
	})
	return p
}

// launch runs a program. It gets none of our own settings, such as PERCH_KILLS, and ends with
// the test, however that ends.
func launch(t testing.TB, binary, data string, args []string, env ...string) *process {
	t.Helper()
	p := &process{t: t, data: data, ready: make(chan string, 1), exited: make(chan struct{})}
	p.cmd = appliancetest.ChildCommand(binary, append([]string{"serve", "--data", data}, args...)...)
	p.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PERCH_") }),
		"PERCH_ROBOTS_MQTT_LISTEN=127.0.0.1:0", "PERCH_ROBOTS_UDP=127.0.0.1:0")
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout = &p.out
	lines := must.Value(p.cmd.StderrPipe())(t)
	must.Succeed(t, appliancetest.RunChild(p.cmd, func() {
		defer close(p.exited)
		for scan := bufio.NewScanner(lines); scan.Scan(); {
			fmt.Fprintln(&p.log, scan.Text())
			if _, after, found := strings.Cut(scan.Text(), "listen=["); found {
				address, _, _ := strings.Cut(after, "]")
				select {
				case p.ready <- "http://" + address:
				default: // another line of it
				}
			}
		}
		p.ended = p.cmd.Wait()
	}))
	return p
}

// program runs this program without MQTT, unless env has it, and returns when it
// serves.
func program(t testing.TB, data string, env ...string) *process {
	t.Helper()
	p := begin(t, perchBinary(t), data, nil, append([]string{"PERCH_MQTT_BROKER=none"}, env...)...)
	p.up()
	return p
}

// up returns when the program serves.
func (p *process) up() {
	p.t.Helper()
	must.Succeed(p.t, p.serves())
	if p.profiles != nil {
		p.profiles.begin(p.t, p.cmd.Process.Pid)
	}
}

// serves waits until the program serves, or ends it where that takes too long.
func (p *process) serves() error {
	late := time.NewTimer(startWithin)
	defer late.Stop()
	select {
	case p.url = <-p.ready:
	case <-p.exited:
		return fmt.Errorf("the program ended at its start: %v\n%s", p.ended, &p.log)
	case <-late.C:
		_ = p.end(syscall.SIGKILL)
		return fmt.Errorf("the program did not start within %s:\n%s", startWithin, &p.log)
	}
	token, err := os.ReadFile(filepath.Join(p.data, "admin-token"))
	p.token = strings.TrimSpace(string(token))
	return err
}

func (p *process) ota() string { return p.url + "/xiaozhi/ota/" }

// end has the program end, and returns how it did.
func (p *process) end(by syscall.Signal) error {
	if p.profiles != nil && p.profiles.stop != nil {
		p.profiles.stop()
	}
	_ = p.cmd.Process.Signal(by) // one that has ended by itself is seen below
	<-p.exited
	p.client.CloseIdleConnections()
	return p.ended
}

// stop ends the program as a service manager does.
func (p *process) stop() {
	p.t.Helper()
	if err := p.end(syscall.SIGTERM); err != nil {
		p.t.Errorf("after SIGTERM the program ended with %v\n%s", err, &p.log)
	}
}

// cut is a power cut.
func (p *process) cut() {
	p.t.Helper()
	err := p.end(syscall.SIGKILL)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		p.t.Fatalf("the program ended by itself: %v\n%s", err, &p.log)
	}
}

// errRefused is an answer that is none of those expected.
type errRefused struct {
	status int
	text   string
}

func (e *errRefused) Error() string { return fmt.Sprintf("%d %s", e.status, e.text) }

// ask sends a request, as the owner where header has nothing else. body is sent
// as it is, or as JSON. An error that is no errRefused is a program that has
// gone.
func (p *process) ask(ctx context.Context, method, path string, body, into any, header ...string) error {
	text, ready := body.([]byte)
	if body != nil && !ready {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	header = append([]string{"Authorization", "Bearer " + p.token}, header...)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return &errRefused{answer.StatusCode, string(got)}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(got, into)
}
