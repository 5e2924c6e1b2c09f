// Package waittest waits in tests for other goroutines and processes, and records what
// they write.
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

// longest is how long a condition is waited for: a machine with other work is slow.
const longest = time.Minute

// For waits until is reports true, and ends the test with what if it does not within a
// minute.
func For(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !Until(longest, is) {
		t.Fatalf("not within %s: %s", longest, what)
	}
}

// Until waits until is reports true, for d at most, and returns whether it did.
func Until(d time.Duration, is func() bool) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for !is() {
		select {
		case <-every.C:
		case <-late.C:
			return is()
		}
	}
	return true
}

// Dead reports whether a process has ended. A zombie counts: in a container there may be nobody to collect it.
func Dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(after, "Z")
}

// Buffer is a bytes.Buffer for several goroutines.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Lines counts the lines that hold a text.
func (b *Buffer) Lines(text string) (n int) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
