package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// soakManager stands for systemd: it is told when the program is ready, and then
// again and again that it does not hang. The unit gives it twice as long.
type soakManager struct {
	conn *net.UnixConn
	fail func(format string, a ...any)
	wg   sync.WaitGroup

	mu    sync.Mutex
	fed   time.Time // the latest; zero while nothing runs that is ready
	feeds int
	slow  time.Duration // the longest between two
}

// soakWatchdog is how long the program may be silent before systemd, with half of
// the unit's time, would end it.
const soakWatchdog = 30 * time.Second

func newSoakManager(dir string, fail func(format string, a ...any)) (*soakManager, error) {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	m := &soakManager{conn: conn, fail: fail}
	m.wg.Go(m.listen)
	return m, nil
}

// environment is what systemd gives a program of Type=notify with a watchdog.
func (m *soakManager) environment() []string {
	return []string{"NOTIFY_SOCKET=" + m.conn.LocalAddr().String(), fmt.Sprintf("WATCHDOG_USEC=%d", soakWatchdog.Microseconds())}
}

func (m *soakManager) listen() {
	buf := make([]byte, 4096)
	for {
		n, err := m.conn.Read(buf)
		if err != nil {
			return // it is closed
		}
		for line := range strings.Lines(string(buf[:n])) {
			switch strings.TrimSpace(line) {
			case "READY=1", "WATCHDOG=1":
				m.feed(time.Now())
			}
		}
	}
}

func (m *soakManager) feed(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.fed.IsZero() {
		m.slow = max(m.slow, now.Sub(m.fed))
	}
	m.fed = now
	m.feeds++
}

// ended is the end of a process, by whatever hand. Its silence before it counts.
func (m *soakManager) ended(now time.Time) {
	m.mu.Lock()
	silent := time.Duration(0)
	if !m.fed.IsZero() {
		silent = max(m.slow, now.Sub(m.fed))
	}
	m.fed, m.slow = time.Time{}, max(m.slow, silent)
	never := m.feeds == 0
	slow := m.slow
	m.mu.Unlock()
	switch {
	case never:
		m.fail("the appliance told its service manager nothing")
	case slow > soakWatchdog:
		m.fail("the watchdog was not fed for %s: systemd would have ended the appliance", slow.Round(time.Second))
	}
}

// longest is the longest silence so far.
func (m *soakManager) longest() (feeds int, longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.feeds, m.slow
}

func (m *soakManager) close() {
	_ = m.conn.Close()
	m.wg.Wait()
}
