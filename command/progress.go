package command

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Progress shows how much of something is done, on a line of its own. It shows
// nothing where the output is not a terminal.
type Progress struct {
	to    io.Writer
	size  int64
	live  bool
	shown int // percent
}

// NewProgress returns the progress of size bytes.
func NewProgress(to io.Writer, size int64) *Progress {
	return &Progress{to: to, size: size, live: ScreenOf(to, os.Getenv).Terminal, shown: -1}
}

// At shows that so many bytes are done.
func (p *Progress) At(done int64) {
	percent := int(done * 100 / max(p.size, 1))
	if !p.live || percent == p.shown {
		return
	}
	p.shown = percent
	const width = 30
	full := percent * width / 100
	fmt.Fprintf(p.to, "\r[%s%s] %3d %% of %.1f MB", strings.Repeat("#", full), strings.Repeat(".", width-full), percent, float64(p.size)/1e6)
}

// End ends the line.
func (p *Progress) End() {
	if p.live && p.shown >= 0 {
		fmt.Fprintln(p.to)
	}
}

// Reader returns a reader that shows what was read from another one.
func (p *Progress) Reader(from io.Reader) io.Reader { return &progressReader{progress: p, from: from} }

type progressReader struct {
	progress *Progress
	from     io.Reader
	read     int64
}

// Read implements io.Reader.
func (r *progressReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.read += int64(n)
	r.progress.At(r.read)
	return n, err
}
