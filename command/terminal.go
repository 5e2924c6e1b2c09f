package command

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// UnknownWidth is the assumed width of an output, in columns, if its real width is unknown.
const UnknownWidth = 100

// Screen describes an output that a person reads.
type Screen struct {
	Width    int  // in columns
	Terminal bool // whether the output is a terminal
	Colour   bool // whether the output may contain colour codes
}

// ScreenOf returns the properties of an output. Colour is for terminals only, and the environment
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

// File returns the file behind an output, such as the output of a command that Execute runs, if it
// is a file.
func File(w io.Writer) (file *os.File, isFile bool) {
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	file, isFile = w.(*os.File)
	return file, isFile
}

// windowOf reports whether a file is a terminal, and the terminal's width in columns, which is 0
// if it is unknown.
func windowOf(file *os.File) (columns int, isTerminal bool) {
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.columns), errno == 0
}
