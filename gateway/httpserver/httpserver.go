// Package httpserver is what all HTTP servers of the appliance share: checks of Host and Origin,
// CORS, keys and limits on trying them, what counts as local, connection limits, the form of
// errors, server-sent events and streams of lines. The checks are functions of a request that
// return an error; routes.go makes gin handlers of them.
package httpserver

import (
	"errors"
	"net/http"
	"syscall"
)

// Fault is an error as a client sees it: a machine word, a sentence that
// names the cause and the cure, and the HTTP status.
type Fault struct {
	Word     string
	Sentence string
	HTTP     int
	Err      error // the cause, if any
}

func (f *Fault) Error() string { return f.Sentence }

func (f *Fault) Unwrap() error { return f.Err }

// Code is the machine word.
func (f *Fault) Code() string { return f.Word }

// Status is the HTTP status.
func (f *Fault) Status() int { return f.HTTP }

// Known is an error of another package, and how a client sees it.
type Known struct {
	Err  error
	Word string
	HTTP int
}

// AsFault returns a Fault with the word and the status of the first known error that err
// wraps, or else err itself.
func AsFault(err error, known []Known) error {
	for _, k := range known {
		if errors.Is(err, k.Err) {
			return &Fault{Word: k.Word, Sentence: err.Error(), HTTP: k.HTTP, Err: err}
		}
	}
	return err
}

// coded is an error with a code and a status. Packages that do not import this one have
// such errors too.
type coded interface {
	error
	Code() string
	Status() int
}

// body is the form of every error.
type body struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// render returns the status and the body of an error. The text of an error that
// is not coded is not shown.
func render(err error) (status int, b body) {
	var c coded = &Fault{Word: "internal", Sentence: "internal error; the log says more", HTTP: http.StatusInternalServerError}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &c):
	case errors.As(err, &tooLarge):
		c = &Fault{Word: "body_too_large", Sentence: "the request body is larger than this address takes", HTTP: http.StatusRequestEntityTooLarge}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		c = &Fault{Word: "disk_full", HTTP: http.StatusInsufficientStorage,
			Sentence: "the appliance's disk is full, so this was not kept; free some space and try again"}
	case errors.Is(err, syscall.EROFS):
		c = &Fault{Word: "disk_read_only", HTTP: http.StatusInsufficientStorage,
			Sentence: "the appliance's disk can only be read, so this was not kept; a failing SD card does that: remount or replace it"}
	}
	b.Error.Code, b.Error.Message = c.Code(), c.Error()
	return c.Status(), b
}
