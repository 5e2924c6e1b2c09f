package skin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"perch/agent"
	"perch/gateway/httpserver"
)

// failure is the shape of an error in OpenAI's API.
type failure struct {
	Error failed `json:"error"`
}

type failed struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// coded is an error with a code and a status.
type coded interface {
	error
	Code() string
	Status() int
}

// openAI renders an error for a client of OpenAI's API. The text of an error that is not coded
// is not disclosed.
func openAI(err error) (status int, shown failure) {
	status, code, text := http.StatusInternalServerError, "internal", "internal error; the log says more"
	var c coded
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &c):
		status, code, text = c.Status(), c.Code(), c.Error()
	case errors.As(err, &tooLarge):
		status, code, text = http.StatusRequestEntityTooLarge, "body_too_large",
			"the request body is larger than 1 MB; leave out the oldest messages"
	}
	kind := map[int]string{http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error",
		http.StatusTooManyRequests: "rate_limit_error"}[status]
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	return status, failure{failed{text, cmp.Or(kind, "invalid_request_error"), nil, code}}
}

// retryAfter returns how long a client should wait, in seconds, or 0.
func retryAfter(status int, err error) int {
	var soon interface{ RetryAfter() int }
	switch {
	case errors.As(err, &soon):
		return soon.RetryAfter()
	case status == http.StatusTooManyRequests:
		return 60 // after too many wrong keys
	}
	return 0
}

// errResponses answers OpenAI's newer API, which its libraries try first.
var errResponses error = &httpserver.Fault{Word: "no_responses_api", HTTP: http.StatusNotFound,
	Sentence: "the Responses API is not spoken here; use POST /v1/chat/completions " +
		"(client.chat.completions.create in OpenAI's libraries, provider.chat(model) in the AI SDK)"}

// model is an agent in OpenAI's list of models.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Owner   string `json:"owned_by"`
}

type models struct {
	Object string  `json:"object"`
	Data   []model `json:"data"`
}

// models returns the household's agent under each of its names, and the characters.
func (s *Server) models() models {
	list := models{Object: "list", Data: []model{s.model(usualModel)}}
	for _, v := range s.o.Words.Vocabularies() {
		list.Data = append(list.Data, s.model(usualModel+"/"+string(v)))
	}
	if s.o.Characters == nil {
		return list
	}
	for _, name := range s.o.Characters.Names() {
		list.Data = append(list.Data, s.model(name))
	}
	return list
}

func (s *Server) model(id string) model { return model{id, "model", s.began.Unix(), usualModel} }

// oneModel returns the model of that name.
func (s *Server) oneModel(id string) (model, error) {
	for _, m := range s.models().Data {
		if m.ID == id {
			return m, nil
		}
	}
	if name, words, is := strings.Cut(id, "/"); is && s.hasCharacter(name) && s.o.Words.Knows(agent.Vocabulary(words)) {
		return s.model(id), nil
	}
	return model{}, noModel(id)
}

// hasCharacter reports whether there is a character of that name.
func (s *Server) hasCharacter(name string) bool {
	return s.o.Characters != nil && s.o.Characters.Exists(name)
}

func noModel(id string) error {
	return &httpserver.Fault{Word: "model_not_found", HTTP: http.StatusNotFound,
		Sentence: fmt.Sprintf("there is no model %.60q; GET /v1/models lists them", id)}
}
