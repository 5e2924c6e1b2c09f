// Package vision answers questions about the pictures that robots' cameras send. A brain calls the robot's
// camera tool. The robot takes a picture and uploads it to a URL, with a token; Issue returns both, and the
// session sends them to the robot. The response describes the picture, and the tool returns the response to
// the brain.
package vision

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
)

// Names of the phrases for an Answer without success.
const (
	PhraseBlind  = "blind"  // no brain can look at pictures
	PhraseFailed = "failed" // a brain has failed
)

// Options configure a Service. All fields are required.
type Options struct {
	Bus interface {
		Publish(robot device.ID, session string, e event.Event)
	}
	Mind interface {
		DescribeImage(context.Context, agent.Look) (string, error)
	}
	// Robots reports which robots are adopted. Pictures of robots that are not adopted are not stored.
	Robots interface{ Trusts(device.ID) bool }
	// Prepare sets the fields of a Look that depend on the robot's settings: the language and the brain of the
	// robot, and the time zone.
	Prepare func(*agent.Look)
	// Phrase returns the text of a phrase in a language.
	Phrase func(language, name string) string
	// Log returns the log for messages about a robot.
	Log func(device.ID) *slog.Logger
}

// Service answers questions about pictures.
type Service struct {
	cameras
	uploads uploads
	options Options
}

// New returns a service without tokens and pictures.
func New(o Options) *Service {
	return &Service{options: o, uploads: uploads{open: map[device.ID]bool{}},
		cameras: cameras{tokens: map[[sha256.Size]byte]camera{}, pictures: map[device.ID]device.Picture{}}}
}

// Answer is the response to an upload, which the robot's tool returns to its caller.
type Answer struct {
	Success  bool   `json:"success"`
	Action   string `json:"action"`
	Response string `json:"response"`
}

// Receive receives an upload and answers its question. It checks the token and the limits of uploads before
// it reads the body. id is the robot's ID; it may be empty, because the token identifies the robot. The error
// is an *httpserver.Fault, an *http.MaxBytesError, or the error of the request's context.
func (s *Service) Receive(w http.ResponseWriter, r *http.Request, id, token string) (Answer, error) {
	if r.ContentLength > MaxUpload {
		httpserver.Unread(w)
		return Answer{}, &http.MaxBytesError{Limit: MaxUpload}
	}
	from, valid := s.holder(token, time.Now())
	given, err := device.ParseID(id)
	if !valid || id != "" && (err != nil || given != from.robot) {
		httpserver.Unread(w)
		return Answer{}, &httpserver.Fault{Word: "wrong_token", HTTP: http.StatusUnauthorized,
			Sentence: "the token is missing, wrong or too old; a camera gets one when its robot's channel opens"}
	}
	trusted := s.options.Robots.Trusts(from.robot)
	release, err := s.uploads.reserve(from.robot, !trusted)
	if err != nil {
		httpserver.Unread(w)
		return Answer{}, err
	}
	defer release()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTimeout)) // fails only for a test's connection without deadlines
	form, err := r.MultipartReader()
	if err != nil {
		return Answer{}, badUpload("this is not a multipart form: %s", err)
	}
	u, err := readUpload(form)
	if err != nil {
		return Answer{}, err
	}
	if trusted {
		s.store(from.robot, u.picture)
	}
	return s.explain(r.Context(), from, u)
}

// explain answers the question about a picture. If no brain can look at pictures, or a brain has failed, the
// Answer holds a phrase instead.
func (s *Service) explain(ctx context.Context, from camera, u upload) (Answer, error) {
	data, err := json.Marshal(map[string]any{"type": u.picture.Type, "bytes": len(u.picture.Data)})
	if err != nil {
		return Answer{}, err
	}
	s.options.Bus.Publish(from.robot, from.session, event.Perceived{Name: "picture_taken", Data: data})
	look := agent.Look{Robot: from.robot, Session: from.session, Question: u.question, Picture: u.picture, Now: time.Now()}
	s.options.Prepare(&look)
	text, err := s.options.Mind.DescribeImage(ctx, look)
	excuse := func(name string) Answer { // an HTTP error would make the robot's tool fail
		_, words := agent.SplitEmotion(s.options.Phrase(look.Language, name))
		return Answer{false, "RESPONSE", words}
	}
	switch {
	case err == nil:
		return Answer{true, "RESPONSE", text}, nil
	case ctx.Err() != nil:
		return Answer{}, ctx.Err()
	case errors.Is(err, agent.ErrBlind):
		return excuse(PhraseBlind), nil
	}
	s.options.Log(from.robot).Warn("a picture could not be described", "robot", from.robot, "err", err)
	return excuse(PhraseFailed), nil
}
