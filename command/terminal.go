package command

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// UnknownWidth is the width of an output, in columns, if its real width is unknown or less than 40 columns.
const UnknownWidth = 100

// Screen describes an output that a person reads.
type Screen struct {
	Width    int  // in columns
	Terminal bool // whether the output is a terminal
	Colour   bool // whether the output may contain colour codes
}

// ScreenOf returns the properties of an output. The width is the width of the terminal, or the environment
// variable COLUMNS if the output is no terminal or has no known width. Only terminals have colour, and the environment
// may disable it (https://no-color.org).
func ScreenOf(w io.Writer, getenv func(string) string) Screen {
	s := Screen{Width: UnknownWidth}
	columns := 0
	if file, ok := File(w); ok {
		columns, s.Terminal = windowOf(file)
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && columns == 0 {
		columns = n
	}
	if columns >= 40 { // help texts would be unreadable in fewer columns
		s.Width = columns
	}
	s.Colour = s.Terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return s
}

// File returns the file that w writes to. w is a file, or the output of a command that Execute runs.
// isFile is false if w writes to something else.
func File(w io.Writer) (file *os.File, isFile bool) {
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	file, isFile = w.(*os.File)
	return file, isFile
}

// windowOf returns the width of a terminal in columns, or 0 if the width is unknown, and whether the
// file is a terminal.
func windowOf(file *os.File) (columns int, isTerminal bool) {
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.columns), errno == 0
}
