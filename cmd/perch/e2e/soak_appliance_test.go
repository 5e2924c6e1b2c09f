package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/store"
)

// Keys of the soak's appliance. They open nothing else.
const (
	soakSkinsKey  = "the soak's key for skins"
	soakBridgeKey = "the soak's key for the bridge"
)

// soakAppliance is the program, which is killed and started again.
type soakAppliance struct {
	t                     *testing.T
	program, config, data string
	listen, local         string // addresses
	manager               *soakManager
	ended                 sync.WaitGroup // the manager is told of the end of each process

	mu     sync.Mutex
	all    []*process // in their order; the last one is there now
	starts []time.Duration
}

// process is the latest.
func (h *soakAppliance) process() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[len(h.all)-1]
}

// lives is how often it was started.
func (h *soakAppliance) lives() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.starts)
}

// log is what all of them have logged.
func (h *soakAppliance) log() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all strings.Builder
	for _, p := range h.all {
		all.WriteString(p.log.String())
	}
	return all.String()
}

// newSoakAppliance writes the configuration: engines of the soak's own stand before
// those that are built in, the broker is mosquitto, and nothing is announced. The addresses
// have to stay the same when the program is started again, so the program cannot choose them.
func newSoakAppliance(t *testing.T, program, data, broker string, e *appliancetest.Peers, m *soakManager) *soakAppliance {
	h := &soakAppliance{t: t, program: program, data: data, manager: m, listen: appliancetest.FreeAddress(t), local: appliancetest.FreeAddress(t)}
	recognizer, brain, synthesizer := e.URLs()
	h.config = appliancetest.WriteConfig(t, fmt.Sprintf(`
listen: ["%[1]s"]
local: ["%[2]s"]
mdns: {enabled: false}
robots: {idle: %[3]s}
speech:
  recognizers:
    - {kind: wyoming, url: "%[4]s", within: %[5]s}
    - {kind: sphinx}
  synthesizers:
    - {kind: openai, url: "%[6]s", within: %[5]s}
    - {kind: espeak, voice: en-us}
brains:
  - {kind: openai, url: "%[7]s", model: soak, within: %[5]s}
  - {kind: reflex}
skins: {key: "%[8]s"}
bridge: {key: "%[9]s"}
mqtt: {broker: "mqtt://%[10]s"}
`, h.listen, h.local, soakIdle, recognizer, soakPatience, synthesizer, brain, soakSkinsKey, soakBridgeKey, broker))
	return h
}

// start runs the program and returns when it serves.
func (h *soakAppliance) start() error {
	began := time.Now()
	p := launch(h.t, h.program, h.data, []string{"--config", h.config}, append(h.manager.environment(), "MALLOC_ARENA_MAX=2")...) // as the unit has it
	h.ended.Go(func() {
		<-p.exited
		h.manager.ended(time.Now())
	})
	h.mu.Lock()
	h.all = append(h.all, p)
	h.mu.Unlock()
	if err := p.serves(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starts = append(h.starts, time.Since(began))
	return nil
}

// installedLongAgo stops the program, which has just been installed, and starts
// it as one that was hours ago: it adopts nobody by itself any more.
func (h *soakAppliance) installedLongAgo() error {
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
	return h.start()
}

// kill takes the power away. Or it has ended, which the soak sees too.
func (h *soakAppliance) kill() { _ = h.process().end(syscall.SIGKILL) }

// stop asks the program to end, and returns an error where it does not, or not well.
func (h *soakAppliance) stop() error {
	p := h.process()
	late := time.AfterFunc(soakStopWithin, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if err := p.end(syscall.SIGTERM); err != nil {
		return fmt.Errorf("the appliance ended with %w, %s after SIGTERM at most", err, soakStopWithin)
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
	lines := strings.Split(strings.TrimSpace(h.process().log.String()), "\n")
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
	if at == h.local { // the owner is on this machine
		header = append(header, "X-Admin-Token", h.process().token)
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
	p := h.process()
	_ = p.end(syscall.SIGQUIT)
	count := map[string]int{}
	for line := range strings.Lines(p.log.String()) {
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
