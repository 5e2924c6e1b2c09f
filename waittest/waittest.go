// Package waittest helps tests to wait for other goroutines and processes, and to record their output.
package waittest

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// timeout is the maximum time that For waits. It is long because the machine may be busy.
const timeout = time.Minute

// For waits until condition returns true. After a minute it ends the test with the description.
func For(t testing.TB, description string, condition func() bool) {
	t.Helper()
	if !Until(timeout, condition) {
		t.Fatalf("not within %s: %s", timeout, description)
	}
}

// Until waits until condition returns true, at most for d. It returns the last result of condition.
func Until(d time.Duration, condition func() bool) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for !condition() {
		select {
		case <-every.C:
		case <-late.C:
			return condition()
		}
	}
	return true
}

// Dead reports whether a process has ended. A zombie counts as ended: in a container it may stay for ever,
// because no parent reaps it.
func Dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(after, "Z")
}

// Buffer is a bytes.Buffer that is safe for concurrent use.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns the content of the buffer.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Lines returns the number of lines of the buffer that contain text.
func (b *Buffer) Lines(text string) (n int) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
