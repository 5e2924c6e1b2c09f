// Package httpserver holds what all HTTP servers of the appliance share: checks of Host, Origin and keys,
// the check that a request is local, CORS, limits of connections, requests and log lines, the form of error
// responses, server-sent events and streams of lines. The checks are functions from a request to an error;
// Guard makes a gin handler from such functions.
package httpserver

import (
	"errors"
	"net/http"
	"syscall"
)

// Fault is an error that is shown to clients.
type Fault struct {
	Word     string // code for programs, such as "not_found"
	Sentence string // sentence for people that names the cause and the cure
	HTTP     int    // HTTP status
	Err      error  // cause; may be nil
}

// Error returns the sentence.
func (f *Fault) Error() string { return f.Sentence }

// Unwrap returns the cause, or nil.
func (f *Fault) Unwrap() error { return f.Err }

// Code returns the code for programs.
func (f *Fault) Code() string { return f.Word }

// Status returns the HTTP status.
func (f *Fault) Status() int { return f.HTTP }

// Known is an error of another package, and the code and status with which it is shown to clients.
type Known struct {
	Err  error
	Word string
	HTTP int
}

// AsFault returns a Fault with the code and status of the first known error that err wraps. If err wraps no
// known error, AsFault returns err itself.
func AsFault(err error, known []Known) error {
	for _, k := range known {
		if errors.Is(err, k.Err) {
			return &Fault{Word: k.Word, Sentence: err.Error(), HTTP: k.HTTP, Err: err}
		}
	}
	return err
}

// coded is an error with a code and a status. Other packages can define such errors without importing this
// package.
type coded interface {
	error
	Code() string
	Status() int
}

// errorBody is the body of an error response.
type errorBody struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// render returns the status and the body of the response for an error.
func render(err error) (status int, b errorBody) {
	f := Shown(err)
	b.Error.Code, b.Error.Message = f.Word, f.Sentence
	return f.HTTP, b
}

// Shown returns the code, sentence and status with which an error is shown to clients. It hides the text of errors
// that are not meant for clients.
func Shown(err error) *Fault {
	var c coded = &Fault{Word: "internal", Sentence: "internal error; the log says more", HTTP: http.StatusInternalServerError}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &c):
	case errors.As(err, &tooLarge):
		c = &Fault{Word: "body_too_large", Sentence: "the request body is larger than this address accepts", HTTP: http.StatusRequestEntityTooLarge}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		c = &Fault{Word: "disk_full", HTTP: http.StatusInsufficientStorage,
			Sentence: "the appliance's disk is full, so this was not stored; free some space and try again"}
	case errors.Is(err, syscall.EROFS):
		c = &Fault{Word: "disk_read_only", HTTP: http.StatusInsufficientStorage,
			Sentence: "the appliance's disk can only be read, so this was not stored; a failing SD card does that: remount or replace it"}
	}
	return &Fault{Word: c.Code(), Sentence: c.Error(), HTTP: c.Status(), Err: err}
}
