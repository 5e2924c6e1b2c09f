package robot

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"os"
	"perch/gateway/robot/dialogue"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/door"
	"perch/limit"
)

const (
	visionPath = "/xiaozhi/vision/explain"

	mostUpload = limit.Message + 64<<10 // the parts' headers and other fields

	// tokenLives is how long a camera's token is good. It is renewed well
	// before that while its channel is open.
	tokenLives = 2 * dialogue.IntroduceEvery
)

// cameras hold who may send pictures, and each robot's last, in memory only.
type cameras struct {
	mu       sync.Mutex
	tokens   map[[sha256.Size]byte]camera // by the hash of the token
	pictures map[device.ID]device.Picture
	oldest   []device.ID // of pictures, in the order they came
	bytes    int         // of pictures
}

// camera is who a token was given to.
type camera struct {
	robot   device.ID
	session string
	expires time.Time
	renewed bool // a newer one of the session is out
}

// mostKept bounds the pictures that are kept, in bytes.
const mostKept = 8 * limit.Message

// issue gives a robot the address it sends pictures to, and a token for it.
// The address is empty where the address by which the robot reaches us is unknown.
func (c *cameras) issue(r device.Robot, session string, now time.Time) (url, token string) {
	if r.BaseURL == "" {
		return "", ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for t, held := range c.tokens {
		switch {
		case now.After(held.expires), held.session == session && held.renewed:
			delete(c.tokens, t)
		case held.session == session: // a picture may be on its way with it
			held.renewed = true
			c.tokens[t] = held
		}
	}
	token = rand.Text()
	c.tokens[sha256.Sum256([]byte(token))] = camera{robot: r.ID, session: session, expires: now.Add(tokenLives)}
	return r.BaseURL + visionPath, token
}

// revoke ends the tokens of a session.
func (c *cameras) revoke(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.tokens, func(_ [sha256.Size]byte, held camera) bool { return held.session == session })
}

// holder is who a token was given to. What is looked up is its hash: the time
// that takes does not show how much of a guess is right.
func (c *cameras) holder(token string, now time.Time) (camera, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, known := c.tokens[sha256.Sum256([]byte(token))]
	return held, known && now.Before(held.expires)
}

func (c *cameras) keep(id device.ID, p device.Picture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(id)
	for len(c.oldest) > 0 && c.bytes+len(p.Data) > mostKept {
		c.drop(c.oldest[0])
	}
	c.pictures[id], c.oldest, c.bytes = p, append(c.oldest, id), c.bytes+len(p.Data)
}

func (c *cameras) drop(id device.ID) {
	c.bytes -= len(c.pictures[id].Data)
	delete(c.pictures, id)
	c.oldest = slices.DeleteFunc(c.oldest, func(o device.ID) bool { return o == id })
}

// Picture returns the last picture of a robot's camera.
func (s *Server) Picture(id device.ID) (device.Picture, bool) {
	s.cameras.mu.Lock()
	defer s.cameras.mu.Unlock()
	p, there := s.cameras.pictures[id]
	return p, there
}

// upload is a picture as cameras send it. The firmware sends the question first;
// browsers use any order, and some name the file "image".
type upload struct {
	question string
	picture  device.Picture
}

func badUpload(format string, a ...any) error {
	return &door.Fault{Word: "bad_picture", Sentence: fmt.Sprintf(format, a...), HTTP: http.StatusBadRequest}
}

// readUpload reads the form, each part no further than its limit.
func readUpload(r *multipart.Reader) (upload, error) {
	var u upload
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return u, unreadable(err)
		}
		switch part.FormName() {
		case "question":
			text, err := readPart(part, limit.Text)
			if err != nil {
				return u, err
			}
			u.question = strings.ToValidUTF8(string(text), "")
		case "file", "image":
			if u.picture.Data, err = readPart(part, limit.Message); err != nil {
				return u, err
			}
		}
	}
	if len(u.picture.Data) == 0 {
		return u, badUpload(`the form has no picture; it belongs in the part "file"`)
	}
	u.picture.Type = http.DetectContentType(u.picture.Data) // the declared type may be wrong
	switch u.picture.Type {
	case "image/jpeg", "image/png", "image/webp", "image/gif":
		return u, nil
	}
	return u, &door.Fault{Word: "no_picture", HTTP: http.StatusUnsupportedMediaType,
		Sentence: "the file is no JPEG, PNG, WebP or GIF picture"}
}

func readPart(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(data)) > most {
		return nil, &door.Fault{Word: "picture_too_large", HTTP: http.StatusRequestEntityTooLarge,
			Sentence: fmt.Sprintf("a part of the form is larger than %d bytes", most)}
	}
	return data, nil
}

// unreadable returns an error that has a code and a status as it is.
func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlowUpload
	}
	return badUpload("the form cannot be read: %s", err)
}

// explanation is what a robot's tool returns to its caller.
type explanation struct {
	Success  bool   `json:"success"`
	Action   string `json:"action"`
	Response string `json:"response"`
}

// explain answers what is on a picture, or says that no brain can see.
func (s *Server) explain(ctx context.Context, from camera, u upload) (explanation, error) {
	data, err := json.Marshal(map[string]any{"type": u.picture.Type, "bytes": len(u.picture.Data)})
	if err != nil {
		return explanation{}, err
	}
	s.options.Bus.Publish(from.robot, from.session, event.Perceived{Name: "picture_taken", Data: data})
	own := s.current.Load().Character(from.robot)
	text, err := s.options.Mind.See(ctx, agent.Look{
		Robot: from.robot, Session: from.session, Question: u.question, Picture: u.picture,
		Language: own.Speech.Language, Brain: own.Brain, Now: time.Now().In(s.current.Load().Zone),
	})
	switch {
	case err == nil:
		return explanation{true, "RESPONSE", text}, nil
	case ctx.Err() != nil:
		return explanation{}, ctx.Err()
	case errors.Is(err, agent.ErrBlind):
		return s.excuse(own.Speech.Language, phraseBlind), nil
	}
	s.logOf(from.robot).Warn("a picture was not looked at", "robot", from.robot, "err", err)
	return s.excuse(own.Speech.Language, phraseFailed), nil
}

// excuse is a phrase as an answer. The robot's tool fails without one.
func (s *Server) excuse(language, name string) explanation {
	_, text := agent.SplitEmotion(s.current.Load().Phrases(language, name))
	return explanation{false, "RESPONSE", text}
}

// How many pictures may be on their way at a time. A robot's camera waits for
// the answer to one before it takes another.
const (
	mostUploads = 4
	// mostOfStrangers of them are of robots that nobody has adopted, so that those
	// do not keep out the others.
	mostOfStrangers = 2
	// uploadWithin is how long one may take to arrive: 4 MB over a Wi-Fi of
	// 2 Mbit/s, of which a robot sends a hundredth.
	uploadWithin = 15 * time.Second
)

// Errors of an upload that is not taken.
var (
	errOneAtATime = &door.Fault{Word: "one_at_a_time", HTTP: http.StatusTooManyRequests,
		Sentence: "this robot's last picture is still being looked at; send the next one after the answer"}
	errTooManyUploads = &door.Fault{Word: "too_many_pictures", HTTP: http.StatusServiceUnavailable,
		Sentence: "too many pictures are being looked at; try again in a moment"}
	errSlowUpload = &door.Fault{Word: "too_slow", HTTP: http.StatusRequestTimeout,
		Sentence: "the picture did not arrive within " + uploadWithin.String() + "; send a smaller one, or look at the network"}
)

// uploads are the pictures that are being received or looked at.
type uploads struct {
	mu sync.Mutex
	of map[device.ID]bool // whether it is of a stranger
}

// reserve takes a slot for a robot's picture. leave gives it back.
func (u *uploads) reserve(id device.ID, stranger bool) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, one := u.of[id]; one {
		return nil, errOneAtATime
	}
	strangers := 0
	for _, is := range u.of {
		if is {
			strangers++
		}
	}
	if len(u.of) >= mostUploads || stranger && strangers >= mostOfStrangers {
		return nil, errTooManyUploads
	}
	u.of[id] = stranger
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.of, id)
	}, nil
}
