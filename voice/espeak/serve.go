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

// request is one JSON value on the process's input. An empty text only loads the voice.
type request struct {
	Voice string `json:"voice"`
	Speed int    `json:"speed"` // words per minute
	Text  string `json:"text"`
}

// niceness of the process. Playing has priority over synthesis.
const niceness = 5

// Serve synthesizes the requests on its input until that ends: it runs in the process that
// an Engine starts. It writes the rate of the sound in Hz, 32 bits; then for each request
// frames of sound, as library.h says, and an empty frame followed by a line, which is empty
// or gives the error. A rate of 0 is followed by such a line as well.
func Serve(in io.Reader, out *os.File) error {
	runtime.LockOSThread() // the priority belongs to a thread
	defer runtime.UnlockOSThread()
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness) // optional
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

// use selects a voice. It returns the error, or "".
func use(r request) string {
	name := C.CString(r.Voice)
	defer C.free(unsafe.Pointer(name))
	if C.use_voice(name, C.int(r.Speed)) != 0 {
		return noVoice
	}
	return ""
}

// speak synthesizes a text. It returns the error, or "".
func speak(text string) string {
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	if status := C.speak(c, C.size_t(len(text))); status != 0 {
		return fmt.Sprintf("it cannot be spoken (%d)", int(status))
	}
	return ""
}
