package espeak

/*
#include <stdlib.h>
#include "library.h"
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// request is what the process is asked for, a JSON value each. An empty text makes the
// voice ready.
type request struct {
	Voice string `json:"voice"`
	Speed int    `json:"speed"` // words a minute
	Text  string `json:"text"`
}

// niceness of what speaks. Playing has priority over synthesis.
const niceness = 5

// Serve speaks what it is asked for until its input ends: it is the process that an Engine
// starts. It writes the rate of the sound in Hz, 32 bits; then for each request frames of
// sound, as library.h says, and a frame of no bytes with a line behind it, which is empty
// or says why the request has failed. A rate of 0 is followed by such a line too.
func Serve(in io.Reader, out *os.File) error {
	runtime.LockOSThread() // the priority is a thread's
	defer runtime.UnlockOSThread()
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness) // without it all is spoken the same
	var reason *C.char
	rate := C.open_library(C.int(out.Fd()), &reason)
	if _, err := out.Write(number(int(rate))); err != nil {
		return fmt.Errorf("write the rate: %w", err)
	}
	if rate == 0 {
		_, err := fmt.Fprintln(out, C.GoString(reason))
		return err
	}
	now := request{}
	for requests := json.NewDecoder(in); ; {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a request: %w; this command is for perch serve alone", err)
		}
		failed := ""
		if r.Voice != now.Voice || r.Speed != now.Speed {
			if failed = use(r); failed == "" {
				now = r
			}
		}
		if failed == "" && r.Text != "" {
			failed = speak(r.Text)
		}
		if _, err := fmt.Fprintf(out, "%s%s\n", number(0), failed); err != nil {
			return fmt.Errorf("write the end of a text: %w", err)
		}
	}
}

// use says why a voice cannot be used.
func use(r request) string {
	name := C.CString(r.Voice)
	defer C.free(unsafe.Pointer(name))
	if C.use_voice(name, C.int(r.Speed)) != 0 {
		return noVoice
	}
	return ""
}

// speak says why a text cannot be spoken.
func speak(text string) string {
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	if status := C.speak(c, C.size_t(len(text))); status != 0 {
		return fmt.Sprintf("it cannot be spoken (%d)", int(status))
	}
	return ""
}
