package llmvtuber

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"perch/agent"
)

// Model is a Live2D model as Open-LLM-VTuber describes it: the client is sent the
// description, and loads the model from the address in it.
type Model struct {
	info        json.RawMessage
	expressions map[string]any // by a word for a face, in lower case; a number or a name
}

// ErrModel is wrapped by ReadModel for a description that is none.
var ErrModel = errors.New("no description of a Live2D model")

// mostExpressions bounds the words for faces in a description.
const mostExpressions = 200

// ReadModel reads a description: an entry of Open-LLM-VTuber's model_dict.json, or a list
// of which the first entry counts.
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

// DefaultModel is the model that Open-LLM-VTuber brings with it, at its address on that
// program's own server.
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

// expression is what the model does with a face: by the model's own word for it, else by
// the words of those vocabularies that such models use; nil where it has none.
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
