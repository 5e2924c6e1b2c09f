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

// errorResponse is the body of an error response in OpenAI's API.
type errorResponse struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// openAIError converts an error to a response of OpenAI's API.
func openAIError(err error) (status int, shown errorResponse) {
	f := httpserver.Shown(err)
	if f.HTTP == http.StatusRequestEntityTooLarge {
		f.Sentence = "the request body is larger than 1 MB; leave out the oldest messages"
	}
	kind := map[int]string{http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error",
		http.StatusTooManyRequests: "rate_limit_error"}[f.HTTP]
	if f.HTTP >= http.StatusInternalServerError {
		kind = "server_error"
	}
	return f.HTTP, errorResponse{errorDetail{f.Sentence, cmp.Or(kind, "invalid_request_error"), nil, f.Word}}
}

// retryAfter returns the value of the Retry-After header in seconds, or 0 for no header.
func retryAfter(status int, err error) int {
	var busy interface{ RetryAfter() int }
	switch {
	case errors.As(err, &busy):
		return busy.RetryAfter()
	case status == http.StatusTooManyRequests:
		return 60 // the client has sent too many wrong keys or other requests that were refused
	}
	return 0
}

// errResponses is the error for requests to the Responses API, OpenAI's newer API, which OpenAI's
// libraries use by default.
var errResponses error = &httpserver.Fault{Word: "no_responses_api", HTTP: http.StatusNotFound,
	Sentence: "the Responses API is not supported; use POST /v1/chat/completions " +
		"(client.chat.completions.create in OpenAI's libraries, provider.chat(model) in the AI SDK)"}

// model is an entry of OpenAI's list of models: a character, or agentModel.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Owner   string `json:"owned_by"`
}

// models is OpenAI's list of models.
type models struct {
	Object string  `json:"object"`
	Data   []model `json:"data"`
}

// models returns agentModel, agentModel with each vocabulary, and the characters.
func (s *Server) models() models {
	list := models{Object: "list", Data: []model{s.model(agentModel)}}
	for _, v := range s.o.Words.Vocabularies() {
		list.Data = append(list.Data, s.model(agentModel+"/"+string(v)))
	}
	if s.o.Characters == nil {
		return list
	}
	for _, name := range s.o.Characters.Names() {
		list.Data = append(list.Data, s.model(name))
	}
	return list
}

// model returns the list entry for an ID, without checking that the ID is valid.
func (s *Server) model(id string) model { return model{id, "model", s.created.Unix(), agentModel} }

// findModel returns the model with an ID.
func (s *Server) findModel(id string) (model, error) {
	for _, m := range s.models().Data {
		if m.ID == id {
			return m, nil
		}
	}
	if name, words, ok := strings.Cut(id, "/"); ok && s.hasCharacter(name) && s.o.Words.Knows(agent.Vocabulary(words)) {
		return s.model(id), nil
	}
	return model{}, noModel(id)
}

// hasCharacter reports whether there is a character called name.
func (s *Server) hasCharacter(name string) bool {
	return s.o.Characters != nil && s.o.Characters.Exists(name)
}

// noModel returns the error for an unknown model.
func noModel(id string) error {
	return &httpserver.Fault{Word: "model_not_found", HTTP: http.StatusNotFound,
		Sentence: fmt.Sprintf("there is no model %.60q; GET /v1/models lists them", id)}
}
