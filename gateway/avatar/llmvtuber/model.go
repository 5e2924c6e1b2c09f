package llmvtuber

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"perch/agent"
)

// Model is a description of a Live2D model as Open-LLM-VTuber uses it. The client receives
// it, and loads the model from the address in it.
type Model struct {
	info        json.RawMessage
	expressions map[string]any // numbers or names, by the face's word in lower case
}

// ErrModel is wrapped by the errors of ReadModel.
var ErrModel = errors.New("no description of a Live2D model")

// mostExpressions bounds the words for faces in a description.
const mostExpressions = 200

// ReadModel decodes an entry of Open-LLM-VTuber's model_dict.json, or the first entry of a
// list.
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
		return nil, fmt.Errorf("%w: it has no url, where the client finds the model", ErrModel)
	case len(m.Expressions) > mostExpressions:
		return nil, fmt.Errorf("%w: %d entries of emotionMap are more than %d", ErrModel, len(m.Expressions), mostExpressions)
	}
	model := &Model{info: json.RawMessage(text), expressions: map[string]any{}}
	for word, e := range m.Expressions {
		switch e.(type) {
		case float64, string:
			model.expressions[strings.ToLower(word)] = e
		default:
			return nil, fmt.Errorf("%w: emotionMap: %.40q is neither a number nor the name of an expression", ErrModel, word)
		}
	}
	return model, nil
}

// DefaultModel returns the model that comes with Open-LLM-VTuber, at its address on that
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

// expression returns the model's expression for a face, or nil if it has none. It tries the
// language model's own word first, and then the vocabularies that Live2D models use.
func (m *Model) expression(words *agent.Words, f agent.Felt) *actions {
	tried := []string{f.Tag, f.Emotion.Name}
	for _, v := range []agent.Vocabulary{agent.VocabularyLive2D, agent.VocabularyRFC, agent.VocabularyVRM} {
		tried = append(tried, words.Word(v, f.Emotion.Name))
	}
	for _, word := range tried {
		if e, known := m.expressions[strings.ToLower(word)]; known {
			return &actions{[]any{e}}
		}
	}
	return nil
}
