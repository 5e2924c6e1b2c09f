package program

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// MostStderr bounds the retained standard error of a program, in bytes.
const MostStderr = 4 << 10

// tail retains the end of a process's standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
	cut  bool // earlier output was dropped
}

func (t *tail) read(r io.Reader) {
	var piece [1024]byte
	for {
		n, err := r.Read(piece[:])
		t.mu.Lock()
		t.text = append(t.text, piece[:n]...)
		if over := len(t.text) - MostStderr; over > 0 {
			t.text, t.cut = append(t.text[:0], t.text[over:]...), true
		}
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// String begins with a whole line, because half a key could not be recognized and blanked.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		_, rest, _ := bytes.Cut(t.text, []byte("\n"))
		return strings.ToValidUTF8(string(rest), "")
	}
	return strings.ToValidUTF8(string(t.text), "")
}
