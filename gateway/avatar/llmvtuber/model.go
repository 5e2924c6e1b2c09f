package llmvtuber

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"perch/agent"
)

// Model is Open-LLM-VTuber's description of a Live2D model. The client receives the
// description, which contains the URL of the model.
type Model struct {
	info        json.RawMessage
	expressions map[string]any // expression numbers (float64) or names; key: word for a face, in lower case
}

// ErrModel is wrapped by the errors of ReadModel.
var ErrModel = errors.New("not a description of a Live2D model")

// maxExpressions is the maximum number of expressions in a description.
const maxExpressions = 200

// ReadModel decodes an entry of Open-LLM-VTuber's model_dict.json, or the first entry of a
// JSON list.
func ReadModel(text []byte) (*Model, error) {
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil {
		if len(list) == 0 {
			return nil, fmt.Errorf("%w: the list is empty", ErrModel)
		}
		text = list[0]
	}
	var m struct {
		URL         string         `json:"url"`
		Expressions map[string]any `json:"emotionMap"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	switch {
	case m.URL == "":
		return nil, fmt.Errorf("%w: url, from which the client loads the model, is missing", ErrModel)
	case len(m.Expressions) > maxExpressions:
		return nil, fmt.Errorf("%w: emotionMap has %d entries, more than %d", ErrModel, len(m.Expressions), maxExpressions)
	}
	model := &Model{info: json.RawMessage(text), expressions: map[string]any{}}
	for word, e := range m.Expressions {
		switch e.(type) {
		case float64, string:
			model.expressions[strings.ToLower(word)] = e
		default:
			return nil, fmt.Errorf("%w: emotionMap: the value of %.40q is neither the number nor the name of an expression", ErrModel, word)
		}
	}
	return model, nil
}

// DefaultModel returns the model that Open-LLM-VTuber includes. Its URL is a path on that
// project's server.
func DefaultModel() *Model {
	m, err := ReadModel([]byte(`{"name":"mao_pro","url":"/live2d-models/mao_pro/runtime/mao_pro.model3.json",` +
		`"kScale":0.5,"initialXshift":0,"initialYshift":0,"idleMotionGroupName":"Idle",` +
		`"emotionMap":{"neutral":0,"anger":2,"disgust":2,"fear":1,"joy":3,"smirk":3,"sadness":1,"surprise":3},` +
		`"tapMotions":{"HitAreaHead":{"":1},"HitAreaBody":{"":1}}}`))
	if err != nil {
		panic(err)
	}
	return m
}

// expression returns the expression for a face, or nil if the Live2D model has no such expression. It
// looks for the word that the language model wrote, for the name of the face, and for the words of
// the vocabularies that Live2D models use, in this order.
func (m *Model) expression(words *agent.Words, f agent.Felt) *actions {
	candidates := []string{f.Tag, f.Emotion.Name}
	for _, v := range []agent.Vocabulary{agent.VocabularyLive2D, agent.VocabularyRFC, agent.VocabularyVRM} {
		candidates = append(candidates, words.Word(v, f.Emotion.Name))
	}
	for _, word := range candidates {
		if e, found := m.expressions[strings.ToLower(word)]; found {
			return &actions{[]any{e}}
		}
	}
	return nil
}
