package command

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Progress shows the progress of a task on one line. It shows nothing if the output is not a
// terminal.
type Progress struct {
	to    io.Writer
	size  int64 // in bytes
	done  int64 // bytes passed to Write
	live  bool  // whether the progress is shown at all
	shown int   // the percentage shown last; -1 if none was shown yet
}

// NewProgress returns the progress of a task of size bytes. It shows nothing if size is 0.
func NewProgress(to io.Writer, size int64) *Progress {
	return &Progress{to: to, size: size, live: size > 0 && ScreenOf(to, os.Getenv).Terminal, shown: -1}
}

// At shows that done bytes of the task have been processed.
func (p *Progress) At(done int64) {
	if !p.live {
		return
	}
	percent := int(min(done, p.size) * 100 / p.size)
	if percent == p.shown {
		return
	}
	p.shown = percent
	const width = 30
	full := percent * width / 100
	fmt.Fprintf(p.to, "\r[%s%s] %3d %% of %.1f MB", strings.Repeat("#", full), strings.Repeat(".", width-full), percent, float64(p.size)/1e6)
}

// Finish ends the line, if progress was shown.
func (p *Progress) Finish() {
	if p.live && p.shown >= 0 {
		fmt.Fprintln(p.to)
	}
}

// Reader returns a reader of from that shows how much of it has been read.
func (p *Progress) Reader(from io.Reader) io.Reader { return io.TeeReader(from, p) }

// Write implements io.Writer. It shows that len(b) more bytes have been processed.
func (p *Progress) Write(b []byte) (int, error) {
	p.done += int64(len(b))
	p.At(p.done)
	return len(b), nil
}
