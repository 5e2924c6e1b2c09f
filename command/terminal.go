package command

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// UnknownWidth is the assumed width of an output that has none, in columns.
const UnknownWidth = 100

// Screen is where something is shown to a person.
type Screen struct {
	Width    int // in columns
	Terminal bool
	Colour   bool
}

// ScreenOf returns what can be shown on an output: colour on a terminal only,
// and only where the environment does not refuse it (no-color.org).
func ScreenOf(w io.Writer, getenv func(string) string) Screen {
	s := Screen{Width: UnknownWidth}
	columns := 0
	if file, ok := w.(*os.File); ok {
		columns, s.Terminal = windowOf(file)
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && columns == 0 {
		columns = n
	}
	if columns >= 40 { // less is too narrow for anything
		s.Width = columns
	}
	s.Colour = s.Terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return s
}

// windowOf reports whether a file is a terminal, and its width; 0 if the
// terminal does not know it.
func windowOf(file *os.File) (columns int, is bool) {
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.columns), errno == 0
}
