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

// request is a request to the process, sent as a JSON value.
type request struct {
	Voice string `json:"voice"`
	Speed int    `json:"speed"` // words per minute
	Text  string `json:"text"`  // "" only loads the voice
}

// niceness is the nice value of the thread that synthesizes. Perch itself, which sends sound to the robots, has
// 0 and so takes precedence.
const niceness = 5

// Serve runs in the child process that an Engine starts. It synthesizes the requests that it reads
// from in, until the end of in.
//
// It first writes the sample rate in Hz, as 32 bits in native byte order; if the library
// cannot be opened, it writes a rate of 0, followed by a line with the error. For each
// request it writes frames of sound (see library.h), an empty frame, and a line, which is
// empty or contains the error.
func Serve(in io.Reader, out *os.File) error {
	runtime.LockOSThread() // because Setpriority sets the priority of a thread
	defer runtime.UnlockOSThread()
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness) // an error does no harm
	var reason *C.char
	rate := C.open_library(C.int(out.Fd()), &reason)
	if _, err := out.Write(encodeNumber(int(rate))); err != nil {
		return fmt.Errorf("write the rate: %w", err)
	}
	if rate == 0 {
		_, err := fmt.Fprintln(out, C.GoString(reason))
		return err
	}
	current := request{} // the request that has selected the voice and speed
	for requests := json.NewDecoder(in); ; {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a request: %w; only perch serve runs this command", err)
		}
		message := ""
		if r.Voice != current.Voice || r.Speed != current.Speed {
			if message = useVoice(r); message == "" {
				current = r
			}
		}
		if message == "" && r.Text != "" {
			message = speak(r.Text)
		}
		if _, err := fmt.Fprintf(out, "%s%s\n", encodeNumber(0), message); err != nil {
			return fmt.Errorf("write the end of a text: %w", err)
		}
	}
}

// useVoice selects the voice and speed of a request. It returns an error message, or "".
func useVoice(r request) string {
	name := C.CString(r.Voice)
	defer C.free(unsafe.Pointer(name))
	if C.use_voice(name, C.int(r.Speed)) != 0 {
		return noVoice
	}
	return ""
}

// speak synthesizes a text. It returns an error message, or "".
func speak(text string) string {
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	if status := C.speak(c, C.size_t(len(text))); status != 0 {
		return fmt.Sprintf("it cannot be spoken (%d)", int(status))
	}
	return ""
}
