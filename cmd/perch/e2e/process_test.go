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

// startWithin is how long the program may take until it serves.
const startWithin = 30 * time.Second

// process is the program as a child process of the test.
type process struct {
	t        testing.TB
	data     string
	cmd      *exec.Cmd
	out      waittest.Buffer // the program's stdout
	log      waittest.Buffer // the program's stderr
	ready    chan string     // receives the program's URL when it serves
	exited   chan struct{}   // closed when the program has ended
	ended    error           // result of the program; valid when exited is closed
	client   http.Client
	profiles *profiling // nil without profiles

	url, token string // the program's URL and the owner's token, after serves
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

// launch runs a program. The program does not inherit variables of the test that begin with PERCH_, such as
// PERCH_KILLS. It ends with the test, even if the test is killed.
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
				default: // a later line with addresses
				}
			}
		}
		p.ended = p.cmd.Wait()
	}))
	return p
}

// program runs the program without a broker, unless env configures one, and returns when the program serves.
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

// serves waits until the program serves. If this takes longer than startWithin, it kills the program.
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

// end sends the program a signal, waits for its end, and returns its result.
func (p *process) end(by syscall.Signal) error {
	if p.profiles != nil && p.profiles.stop != nil {
		p.profiles.stop()
	}
	_ = p.cmd.Process.Signal(by) // fails if the program has ended; p.ended is then its result
	<-p.exited
	p.client.CloseIdleConnections()
	return p.ended
}

// stop ends the program with SIGTERM, as a service manager does.
func (p *process) stop() {
	p.t.Helper()
	if err := p.end(syscall.SIGTERM); err != nil {
		p.t.Errorf("after SIGTERM the program ended with %v\n%s", err, &p.log)
	}
}

// cut simulates a power cut: it kills the program.
func (p *process) cut() {
	p.t.Helper()
	err := p.end(syscall.SIGKILL)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		p.t.Fatalf("the program ended by itself: %v\n%s", err, &p.log)
	}
}

// errRefused is the error for a response with a status of 300 or above.
type errRefused struct {
	status int
	text   string
}

func (e *errRefused) Error() string { return fmt.Sprintf("%d %s", e.status, e.text) }

// ask sends a request with the owner's token, unless header replaces it, and decodes the response into into, which may
// be nil. A body of type []byte is sent unchanged, any other as JSON. An error other than errRefused usually means that
// the program has ended.
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
