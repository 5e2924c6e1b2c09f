package packaging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"perch/store"
)

// Keys of the soak's appliance. They open nothing else.
const (
	soakSkinsKey  = "the soak's key for skins"
	soakBridgeKey = "the soak's key for the bridge"
)

// soakAppliance is the program, as a process of its own that can be killed.
type soakAppliance struct {
	program, config, data string
	listen, local         string // addresses
	log                   *os.File
	manager               *soakManager

	mu     sync.Mutex
	latest *soakProcess
	starts []time.Duration
}

// soakProcess is one life of the program.
type soakProcess struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended, for whatever reason
}

// process is the latest.
func (h *soakAppliance) process() *soakProcess {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.latest
}

// lives is how often it was started.
func (h *soakAppliance) lives() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.starts)
}

// newSoakAppliance writes the configuration: engines of the soak's own stand before
// those that are built in, the broker is mosquitto, and nothing is announced.
func newSoakAppliance(program, dir, data, broker string, e *soakEngines, m *soakManager) (*soakAppliance, error) {
	h := &soakAppliance{program: program, data: data, manager: m, config: filepath.Join(dir, "perch.yaml")}
	var err error
	if h.listen, err = freeAddress(); err != nil {
		return nil, err
	}
	if h.local, err = freeAddress(); err != nil {
		return nil, err
	}
	text := fmt.Sprintf(`
listen: ["%[1]s"]
local: ["%[2]s"]
mdns: {enabled: false}
robots: {idle: %[3]s}
speech:
  recognizers:
    - {kind: wyoming, url: "tcp://%[4]s", within: %[5]s}
    - {kind: sphinx}
  synthesizers:
    - {kind: openai, url: "http://%[6]s/v1", within: %[5]s}
    - {kind: espeak, voice: en-us}
brains:
  - {kind: openai, url: "http://%[7]s/v1", model: soak, within: %[5]s}
  - {kind: reflex}
skins: {key: "%[8]s"}
bridge: {key: "%[9]s"}
mqtt: {broker: "mqtt://%[10]s"}
`, h.listen, h.local, soakIdle, e.recognizer.address(), soakPatience, e.synthesizer.address(), e.brain.address(), soakSkinsKey, soakBridgeKey, broker)
	if err := os.WriteFile(h.config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	h.log, err = os.OpenFile(filepath.Join(dir, "perch.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	return h, err
}

// freeAddress is a loopback address nobody listens at now. It has to stay the
// same when the program is started again, so the program cannot choose it.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// soakChild is a program that ends with the soak, even where the soak itself is
// killed.
func soakChild(program string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(program, arguments...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // Ctrl-C is for the soak, which ends them
	return cmd
}

// start runs the program and returns when it answers.
func (h *soakAppliance) start(ctx context.Context) error {
	began := time.Now()
	cmd := soakChild(h.program, "serve", "--config", h.config, "--data", h.data)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PERCH_") })
	cmd.Env = append(cmd.Env, h.manager.environment()...)
	cmd.Env = append(cmd.Env, "MALLOC_ARENA_MAX=2") // as the unit has it
	cmd.Stderr, cmd.Stdout = h.log, h.log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the appliance: %w", err)
	}
	p := &soakProcess{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // why it ended is asked of its state
		h.manager.ended(time.Now())
		close(p.exited)
	}()
	h.mu.Lock()
	h.latest = p
	h.mu.Unlock()
	for time.Since(began) < soakStartWithin {
		if status, _, err := h.request(ctx, http.MethodGet, h.local, "/ready", ""); err == nil && status == http.StatusOK {
			h.mu.Lock()
			h.starts = append(h.starts, time.Since(began))
			h.mu.Unlock()
			return nil
		}
		select {
		case <-p.exited:
			return errors.New("the appliance ended at its start; its log ends with\n" + h.tail())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("the appliance does not answer %s after its start; its log ends with\n%s", soakStartWithin, h.tail())
}

// installedLongAgo stops the program, which has just been installed, and starts
// it as one that was hours ago: it adopts nobody by itself any more.
func (h *soakAppliance) installedLongAgo(ctx context.Context) error {
	if err := h.stop(); err != nil {
		return err
	}
	db, err := store.Open(filepath.Join(h.data, "perch.db"), store.Options{Expect: true})
	if err != nil {
		return err
	}
	err = store.NewTable[string](db, "appliance").Put("installed", time.Now().Add(-3*time.Hour).UTC().Format(time.RFC3339))
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	return h.start(ctx)
}

// kill takes the power away.
func (h *soakAppliance) kill() {
	p := h.process()
	_ = p.cmd.Process.Kill() // or it has ended, which the soak sees too
	<-p.exited
}

// stop asks the program to end, and returns an error where it does not, or not well.
func (h *soakAppliance) stop() error {
	p := h.process()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the appliance: %w", err)
	}
	select {
	case <-p.exited:
	case <-time.After(soakStopWithin):
		h.kill()
		return fmt.Errorf("the appliance did not end within %s of SIGTERM", soakStopWithin)
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("the appliance ended with %s", p.cmd.ProcessState)
	}
	return nil
}

// running reports whether the process is there.
func (h *soakAppliance) running() bool {
	select {
	case <-h.process().exited:
		return false
	default:
		return true
	}
}

// tail is the end of the log.
func (h *soakAppliance) tail() string {
	text, err := os.ReadFile(h.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(len(lines)-40, 0):], "\n")
}

// races returns the reports of the race detector in a log, of a program that was built
// with it.
func races(log string) []string {
	const begins = "WARNING: DATA RACE"
	reports := strings.Split(log, begins)[1:]
	for i, text := range reports {
		text, _, _ = strings.Cut(text, "==================")
		reports[i] = begins + text
	}
	return reports
}

// request asks the program at one of its addresses.
func (h *soakAppliance) request(ctx context.Context, method, at, path, body string, header ...string) (int, string, error) {
	if token, err := os.ReadFile(filepath.Join(h.data, "admin-token")); err == nil && at == h.local { // the owner is on this machine
		header = append(header, "X-Admin-Token", strings.TrimSpace(string(token)))
	}
	return soakRequest(ctx, "", method, "http://"+at+path, body, header...)
}

// measure is what a process holds.
type measure struct {
	goroutines, fds  int
	anonymous, heap  int // bytes
	cpu              time.Duration
	robots, sessions int // channels open, and opened
}

// measure asks the metrics and the kernel.
func (h *soakAppliance) measure(ctx context.Context) (m measure, err error) {
	status, text, err := h.request(ctx, http.MethodGet, h.local, "/metrics", "")
	if err != nil || status != http.StatusOK {
		return m, fmt.Errorf("ask for the metrics: %d %w", status, err)
	}
	value := func(name string) int {
		for line := range strings.Lines(text) {
			if v, found := strings.CutPrefix(line, name+" "); found {
				f, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
				return int(f)
			}
		}
		return -1
	}
	m.goroutines, m.heap = value("go_goroutines"), value("go_memstats_heap_inuse_bytes")
	m.robots, m.sessions = value("perch_robots_connected"), value("perch_sessions_total")
	if m.goroutines < 1 || m.robots < 0 {
		return m, errors.New("the metrics lack go_goroutines or perch_robots_connected")
	}
	proc := fmt.Sprintf("/proc/%d/", h.process().cmd.Process.Pid)
	open, err := os.ReadDir(proc + "fd")
	if err != nil {
		return m, err
	}
	m.fds = len(open)
	state, err := os.ReadFile(proc + "status")
	if err != nil {
		return m, err
	}
	_, after, _ := bytes.Cut(state, []byte("RssAnon:"))
	kb, err := strconv.Atoi(strings.Fields(string(after))[0])
	m.anonymous = kb << 10
	m.cpu = processorTime(proc + "stat")
	return m, err
}

// processorTime is what a process has used, its children left out.
func processorTime(stat string) time.Duration { return ticks(stat, 11, 13) } // utime and stime

// processorTimes is with the children it has waited for.
func processorTimes(stat string) time.Duration { return ticks(stat, 11, 15) }

// ticks sums up fields of proc_pid_stat(5), counted from the one after the name.
func ticks(stat string, from, to int) time.Duration {
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0
	}
	all := 0
	for _, f := range strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))[from:to] {
		n, _ := strconv.Atoi(f)
		all += n
	}
	return time.Duration(all) * 10 * time.Millisecond
}

// descriptors are what the process has open, by kind.
func (h *soakAppliance) descriptors() map[string]int {
	dir := fmt.Sprintf("/proc/%d/fd", h.process().cmd.Process.Pid)
	kinds := map[string]int{}
	open, _ := os.ReadDir(dir) // or it has ended
	for _, d := range open {
		target, _ := os.Readlink(filepath.Join(dir, d.Name()))
		kind, _, _ := strings.Cut(target, ":[")
		kinds[kind]++
	}
	return kinds
}

// stacks has the program tell what every goroutine of it does, which ends it,
// and counts them by who began them.
func (h *soakAppliance) stacks() string {
	before, err := h.log.Stat()
	if err != nil {
		return err.Error()
	}
	p := h.process()
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	<-p.exited
	text, err := os.ReadFile(h.log.Name())
	if err != nil {
		return err.Error()
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text[before.Size():])) {
		if by, found := strings.CutPrefix(line, "created by "); found {
			by, _, _ = strings.Cut(strings.TrimSpace(by), " in goroutine")
			count[by]++
		}
	}
	return byCount(count)
}

// byCount lists what was counted, the most first.
func byCount(count map[string]int) string {
	lines := []string{}
	for what, n := range count {
		lines = append(lines, fmt.Sprintf("%5d  %s", n, what))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(b, a) })
	return strings.Join(lines[:min(len(lines), 25)], "\n")
}

// soakBroker is mosquitto.
type soakBroker struct {
	program, address, config string
	cmd                      *exec.Cmd
}

func newSoakBroker(dir string) (*soakBroker, error) {
	if _, err := exec.LookPath("mosquitto_sub"); err != nil {
		return nil, fmt.Errorf("%w; apt install mosquitto-clients", err)
	}
	program, err := exec.LookPath("mosquitto")
	if err != nil { // who is no administrator has no sbin in the path
		program, err = exec.LookPath("/usr/sbin/mosquitto")
	}
	if err != nil {
		return nil, fmt.Errorf("%w; apt install mosquitto", err)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	b := &soakBroker{program: program, address: address, config: filepath.Join(dir, "mosquitto.conf")}
	text := "listener " + port + " 127.0.0.1\nallow_anonymous true\npersistence false\nlog_dest none\n"
	return b, os.WriteFile(b.config, []byte(text), 0o644)
}

func (b *soakBroker) start() error {
	b.cmd = soakChild(b.program, "-c", b.config)
	if err := b.cmd.Start(); err != nil {
		return fmt.Errorf("start mosquitto: %w", err)
	}
	for range 500 {
		if c, err := net.Dial("tcp", b.address); err == nil {
			_ = c.Close() // it was only to see
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("mosquitto does not listen")
}

func (b *soakBroker) stop() {
	if b.cmd != nil && b.cmd.ProcessState == nil {
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait() // it was killed
	}
}
