// Package httpserver is what every HTTP door shares: the checks of Host and Origin and
// their answers to browsers, keys and how often they may be tried, what counts as
// local, connection limits, the shape of errors, server-sent events and streams
// of lines. The checks are functions of a request that return an error; routes.go
// makes gin handlers of them.
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
	Err      error // what Sentence is of, if anything
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

// AsFault gives an error the word and the status of the first of those that it
// wraps. Any other is returned as it is.
func AsFault(err error, known []Known) error {
	for _, k := range known {
		if errors.Is(err, k.Err) {
			return &Fault{Word: k.Word, Sentence: err.Error(), HTTP: k.HTTP, Err: err}
		}
	}
	return err
}

// coded is any error with a code and a status of its own. Packages that do not
// import door have such errors too.
type coded interface {
	error
	Code() string
	Status() int
}

// body is the shape of every error.
type body struct {
	Error shown `json:"error"`
}

type shown struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// render returns the status and the body of an error. The text of an error that
// is not coded stays inside.
func render(err error) (int, body) {
	var c coded
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &c):
		return c.Status(), body{shown{c.Code(), c.Error()}}
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge,
			body{shown{Code: "body_too_large", Message: "the request body is larger than this address takes"}}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return http.StatusInsufficientStorage,
			body{shown{Code: "disk_full", Message: "the appliance's disk is full, so this was not kept; free some space and try again"}}
	case errors.Is(err, syscall.EROFS):
		return http.StatusInsufficientStorage, body{shown{Code: "disk_read_only",
			Message: "the appliance's disk can only be read, so this was not kept; a failing SD card does that: remount or replace it"}}
	}
	return http.StatusInternalServerError, body{shown{Code: "internal", Message: "internal error; the log says more"}}
}
