// Package vision answers questions about the pictures that robots' cameras send: a robot gets an
// address and a token for it, uploads a picture, and its tool returns the answer to the brain that
// has called it.
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

// Phrases of an Answer that fails.
const (
	PhraseBlind  = "blind"  // no brain can look at a picture
	PhraseFailed = "failed" // a brain has failed
)

// Options are what a Service needs.
type Options struct {
	Bus interface {
		Publish(robot device.ID, session string, e event.Event)
	}
	Mind interface {
		DescribeImage(context.Context, agent.Look) (string, error)
	}
	// Robots knows which robots their owner has adopted. Pictures of others are not stored.
	Robots interface{ Trusts(device.ID) bool }
	// Prepare sets a robot's language and brain, and the zone of the time.
	Prepare func(*agent.Look)
	Phrase  func(language, name string) string
	Log     func(device.ID) *slog.Logger
}

// Service answers questions about pictures.
type Service struct {
	cameras
	uploads uploads
	options Options
}

// New returns a service.
func New(o Options) *Service {
	return &Service{options: o, uploads: uploads{stranger: map[device.ID]bool{}},
		cameras: cameras{tokens: map[[sha256.Size]byte]camera{}, pictures: map[device.ID]device.Picture{}}}
}

// Answer is what a robot's tool returns to its caller.
type Answer struct {
	Success  bool   `json:"success"`
	Action   string `json:"action"`
	Response string `json:"response"`
}

// Receive receives a picture and answers its question. Who may send one, and whether a slot is free
// for it, is decided before any of it is read. The id may be empty; the token says enough.
func (s *Service) Receive(w http.ResponseWriter, r *http.Request, id, token string) (Answer, error) {
	if r.ContentLength > MaxUpload {
		httpserver.Unread(w)
		return Answer{}, &http.MaxBytesError{Limit: MaxUpload}
	}
	from, known := s.holder(token, time.Now())
	given, err := device.ParseID(id)
	if !known || id != "" && (err != nil || given != from.robot) {
		httpserver.Unread(w)
		return Answer{}, &httpserver.Fault{Word: "wrong_token", HTTP: http.StatusUnauthorized,
			Sentence: "the token is missing, wrong or too old; a camera gets one when its robot's channel opens"}
	}
	trusted := s.options.Robots.Trusts(from.robot)
	leave, err := s.uploads.reserve(from.robot, !trusted)
	if err != nil {
		httpserver.Unread(w)
		return Answer{}, err
	}
	defer leave()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadWithin)) // a test's connection may have no deadlines
	form, err := r.MultipartReader()
	if err != nil {
		return Answer{}, badUpload("this is no multipart form: %s", err)
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

// explain answers what is on a picture, or says that no brain can see.
func (s *Service) explain(ctx context.Context, from camera, u upload) (Answer, error) {
	data, err := json.Marshal(map[string]any{"type": u.picture.Type, "bytes": len(u.picture.Data)})
	if err != nil {
		return Answer{}, err
	}
	s.options.Bus.Publish(from.robot, from.session, event.Perceived{Name: "picture_taken", Data: data})
	look := agent.Look{Robot: from.robot, Session: from.session, Question: u.question, Picture: u.picture, Now: time.Now()}
	s.options.Prepare(&look)
	text, err := s.options.Mind.DescribeImage(ctx, look)
	excuse := func(name string) Answer { // the robot's tool fails without one
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
	s.options.Log(from.robot).Warn("a picture was not looked at", "robot", from.robot, "err", err)
	return excuse(PhraseFailed), nil
}
