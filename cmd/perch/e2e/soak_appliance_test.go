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

// Keys of the soak's appliance.
const (
	soakSkinsKey  = "the soak's key for skins"
	soakBridgeKey = "the soak's key for the bridge"
)

// soakAppliance is the program under test, which the soak kills and starts again.
type soakAppliance struct {
	t                     *testing.T
	program, config, data string
	listen, local         string // addresses
	manager               *soakManager
	ended                 sync.WaitGroup // goroutines that report the end of each process to the manager

	mu     sync.Mutex
	all    []*process // in the order of their starts; the last is the current one
	starts []time.Duration
}

// process returns the current process.
func (h *soakAppliance) process() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[len(h.all)-1]
}

// lives returns how often the program has started to serve.
func (h *soakAppliance) lives() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.starts)
}

// log returns the logs of all processes.
func (h *soakAppliance) log() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all strings.Builder
	for _, p := range h.all {
		all.WriteString(p.log.String())
	}
	return all.String()
}

// newSoakAppliance writes the configuration: the soak's fake engines come before local ones in each list, the MQTT broker
// is mosquitto, and mDNS is off. The addresses are fixed, because they must stay the same after a restart.
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

// start runs the program and returns when the program serves, or with an error.
func (h *soakAppliance) start() error {
	began := time.Now()
	p := launch(h.t, h.program, h.data, []string{"--config", h.config}, append(h.manager.environment(), "MALLOC_ARENA_MAX=2")...) // as in the systemd unit
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

// installedLongAgo stops the program, sets the time of its installation to three hours ago, and starts it. After that,
// the program adopts no robots automatically.
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

// kill kills the process. The error that the process had already ended is ignored, because the soak checks that itself.
func (h *soakAppliance) kill() { _ = h.process().end(syscall.SIGKILL) }

// stop sends SIGTERM, and SIGKILL after soakStopWithin. It returns an error if the program does not exit with status 0.
func (h *soakAppliance) stop() error {
	p := h.process()
	late := time.AfterFunc(soakStopWithin, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if err := p.end(syscall.SIGTERM); err != nil {
		return fmt.Errorf("the appliance ended with %w, %s after SIGTERM at most", err, soakStopWithin)
	}
	return nil
}

// running reports whether the current process runs.
func (h *soakAppliance) running() bool {
	select {
	case <-h.process().exited:
		return false
	default:
		return true
	}
}

// tail returns the last 40 lines that the current process has logged.
func (h *soakAppliance) tail() string {
	lines := strings.Split(strings.TrimSpace(h.process().log.String()), "\n")
	return strings.Join(lines[max(len(lines)-40, 0):], "\n")
}

// races returns the reports of the race detector in a log.
func races(log string) []string {
	const begins = "WARNING: DATA RACE"
	reports := strings.Split(log, begins)[1:]
	for i, text := range reports {
		text, _, _ = strings.Cut(text, "==================")
		reports[i] = begins + text
	}
	return reports
}

// request sends a request to one of the program's addresses, with the owner's token if that address is local.
func (h *soakAppliance) request(ctx context.Context, method, at, path, body string, header ...string) (int, string, error) {
	if at == h.local {
		header = append(header, "X-Admin-Token", h.process().token)
	}
	return soakRequest(ctx, "", method, "http://"+at+path, body, header...)
}

// measure is the resource usage of a process.
type measure struct {
	goroutines, fds  int
	anonymous, heap  int // bytes of anonymous memory (RssAnon), and of heap spans in use
	cpu              time.Duration
	robots, sessions int // open channels, and channels opened since the start
}

// measure reads the program's metrics and the kernel's data about the process.
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

// processorTime returns the CPU time of the process with a stat file, without its children.
func processorTime(stat string) time.Duration { return ticks(stat, 11, 13) } // utime and stime

// processorTimes returns the CPU time of the process with a stat file, and of the children it has waited for.
func processorTimes(stat string) time.Duration { return ticks(stat, 11, 15) }

// ticks sums up fields from (inclusive) to to (exclusive) of a stat file, see proc_pid_stat(5). Field 0 is the one after
// the name. A tick is 10 ms. The result is 0 if the file cannot be read.
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

// descriptors counts the open file descriptors of the process by their target: a path, or a kind such as socket.
func (h *soakAppliance) descriptors() map[string]int {
	dir := fmt.Sprintf("/proc/%d/fd", h.process().cmd.Process.Pid)
	kinds := map[string]int{}
	open, _ := os.ReadDir(dir) // fails if the process has ended
	for _, d := range open {
		target, _ := os.Readlink(filepath.Join(dir, d.Name()))
		kind, _, _ := strings.Cut(target, ":[")
		kinds[kind]++
	}
	return kinds
}

// stacks ends the program with SIGQUIT, which makes it log all goroutines, and counts them by the function that created
// them.
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

// byCount formats the 25 largest counts, one in a line, the largest first.
func byCount(count map[string]int) string {
	lines := []string{}
	for what, n := range count {
		lines = append(lines, fmt.Sprintf("%5d  %s", n, what))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(b, a) })
	return strings.Join(lines[:min(len(lines), 25)], "\n")
}
