package command

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// UnknownWidth is the assumed width of an output that is not a terminal, in columns.
const UnknownWidth = 100

// Screen describes an output for a person.
type Screen struct {
	Width    int // in columns
	Terminal bool
	Colour   bool
}

// ScreenOf returns the properties of an output: it has colour only on a terminal, unless the
// environment disables it (no-color.org).
func ScreenOf(w io.Writer, getenv func(string) string) Screen {
	s := Screen{Width: UnknownWidth}
	columns := 0
	if file, ok := w.(*os.File); ok {
		columns, s.Terminal = windowOf(file)
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && columns == 0 {
		columns = n
	}
	if columns >= 40 { // less is too narrow
		s.Width = columns
	}
	s.Colour = s.Terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return s
}

// windowOf reports whether a file is a terminal, and its width, or 0 if unknown.
func windowOf(file *os.File) (columns int, is bool) {
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.columns), errno == 0
}
