package program

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// MaxStderr is how many bytes of a program's standard error are stored.
const MaxStderr = 4 << 10

// tail stores the end of a process's standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
	cut  bool // whether earlier output was dropped
}

// readFrom reads from r until an error.
func (t *tail) readFrom(r io.Reader) {
	var piece [1024]byte
	for {
		n, err := r.Read(piece[:])
		t.mu.Lock()
		t.text = append(t.text, piece[:n]...)
		if surplus := len(t.text) - MaxStderr; surplus > 0 {
			t.text, t.cut = append(t.text[:0], t.text[surplus:]...), true
		}
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// String returns the stored text as valid UTF-8. If earlier output was dropped, the text begins
// after the first newline: callers remove secrets from the text, and would not recognize a secret
// whose beginning was dropped.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		_, rest, _ := bytes.Cut(t.text, []byte("\n"))
		return strings.ToValidUTF8(string(rest), "")
	}
	return strings.ToValidUTF8(string(t.text), "")
}
