package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// soakManager plays systemd: it receives the notifications READY=1 and WATCHDOG=1 of the program, see sd_notify(3).
type soakManager struct {
	conn *net.UnixConn
	fail func(format string, a ...any)
	wg   sync.WaitGroup

	mu    sync.Mutex
	fed   time.Time // time of the last notification; zero while no process is ready
	feeds int
	slow  time.Duration // longest time between two notifications of a process
}

// soakWatchdog is the watchdog's timeout, half of that in the systemd unit. If the program sends no notification for
// longer, the soak fails.
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

// environment returns the variables that systemd sets for a service of Type=notify with a watchdog.
func (m *soakManager) environment() []string {
	return []string{"NOTIFY_SOCKET=" + m.conn.LocalAddr().String(), fmt.Sprintf("WATCHDOG_USEC=%d", soakWatchdog.Microseconds())}
}

func (m *soakManager) listen() {
	buf := make([]byte, 4096)
	for {
		n, err := m.conn.Read(buf)
		if err != nil {
			return // the socket is closed
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

// ended must be called when a process has ended. The time since its last notification counts too. It records a failure if
// no process ever sent a notification, or if the longest time exceeds soakWatchdog.
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

// longest returns the number of notifications, and the longest time between two of them.
func (m *soakManager) longest() (feeds int, longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.feeds, m.slow
}

func (m *soakManager) close() {
	_ = m.conn.Close()
	m.wg.Wait()
}
