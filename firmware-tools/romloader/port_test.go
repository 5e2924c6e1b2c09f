package romloader

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"go.bug.st/serial"
	"go.bug.st/serial/enumerator"
)

func TestReasons(t *testing.T) {
	for want, err := range map[string]error{
		"sudo adduser $USER dialout":            &fs.PathError{Op: "open", Path: "/dev/ttyACM0", Err: fs.ErrPermission},
		"is the robot plugged in?":              syscall.ENOENT,
		"too many open files":                   syscall.EMFILE,
		"another program uses it":               &serial.PortError{}, // whose zero is a busy port
		"the group dialout":                     syscall.EACCES,
		"the robot was unplugged, or has lost ": gone(syscall.EIO),
	} {
		if got := reasonOf(err); !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestDescribe: a device's description is shown on a terminal.
func TestDescribe(t *testing.T) {
	p := &enumerator.PortDetails{Manufacturer: "Espressif\x1b[2J", Product: strings.Repeat("JTAG ", 20)}
	if got := describe(p); !strings.HasPrefix(got, "Espressif[2J JTAG") || len(got) != 60 {
		t.Errorf("%q", got)
	}
}

func TestPorts(t *testing.T) {
	if _, err := Ports(); err != nil {
		t.Error(err)
	}
}
