package skin

import (
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

// coded is any error with a code of its own.
type coded interface {
	error
	Code() string
	Status() int
}

// openAI renders an error for a client of OpenAI's API. The text of an error that is
// not coded stays inside.
func openAI(err error) (status int, shown failure) {
	var c coded
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &c):
		return c.Status(), failure{failed{c.Error(), typeOf(c.Status()), nil, c.Code()}}
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge, failure{failed{"the request body is larger than 1 MB; leave out the oldest messages",
			typeOf(http.StatusRequestEntityTooLarge), nil, "body_too_large"}}
	}
	return http.StatusInternalServerError, failure{failed{"internal error; the log says more", typeOf(http.StatusInternalServerError), nil,
		"internal"}}
}

// typeOf is OpenAI's word for a class of errors.
func typeOf(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// retryAfter is how long a client does well to wait, in seconds; 0 is no word
// on it.
func retryAfter(status int, err error) int {
	var soon interface{ RetryAfter() int }
	switch {
	case errors.As(err, &soon):
		return soon.RetryAfter()
	case status == http.StatusTooManyRequests:
		return 60 // too many wrong keys
	}
	return 0
}

// errResponses is the answer to OpenAI's newer API, which its libraries try first.
var errResponses error = &httpserver.Fault{Word: "no_responses_api", HTTP: http.StatusNotFound,
	Sentence: "the Responses API is not spoken here; use POST /v1/chat/completions " +
		"(client.chat.completions.create in OpenAI's libraries, provider.chat(model) in the AI SDK)"}

// model is the agent, as a model.
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

// models lists the agent under each of its names.
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

// oneModel is the one of that name.
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

// hasCharacter reports whether a name is that of a character.
func (s *Server) hasCharacter(name string) bool {
	return s.o.Characters != nil && s.o.Characters.Exists(name)
}

func noModel(id string) error {
	return &httpserver.Fault{Word: "model_not_found", HTTP: http.StatusNotFound,
		Sentence: fmt.Sprintf("there is no model %.60q; GET /v1/models lists them", id)}
}
