package main

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// unknownWidth is that of a screen that does not tell.
const unknownWidth = 100

// screenOf says what can be shown there: colour on a terminal only, and not
// where somebody asked for none (no-color.org).
func screenOf(w io.Writer, getenv func(string) string) screen {
	s := screen{width: unknownWidth}
	columns := 0
	if file, ok := w.(*os.File); ok {
		columns, s.colour = windowOf(file)
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && columns == 0 {
		columns = n
	}
	if columns >= 40 { // in less there is nothing to see
		s.width = columns
	}
	s.colour = s.colour && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return s
}

// windowOf says whether a file is one, and how wide; 0 where it does not know.
func windowOf(file *os.File) (columns int, is bool) {
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.columns), errno == 0
}
