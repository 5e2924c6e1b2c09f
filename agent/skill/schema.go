package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"perch/limit"
)

// schema is the checked subset of a JSON Schema of type object. The endpoint checks the
// rest.
type schema struct {
	Type       string
	Required   []string
	Properties map[string]property
}

// property is one argument. The zero value accepts any value.
type property struct {
	Type types
	Enum []any
}

// UnmarshalJSON also takes a schema that is true or false.
func (p *property) UnmarshalJSON(text []byte) error {
	var all bool
	if json.Unmarshal(text, &all) == nil {
		return nil
	}
	type plain property
	return json.Unmarshal(text, (*plain)(p))
}

// types are the allowed JSON types; none means all.
type types []string

// UnmarshalJSON accepts one type or a list.
func (t *types) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = types{one}
	} else if json.Unmarshal(text, (*[]string)(t)) != nil {
		return errors.New("type is a word or a list of words")
	}
	for _, name := range *t {
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "object", "array", "null"}, name) {
			return fmt.Errorf("%.40q is no type of JSON Schema", name)
		}
	}
	return nil
}

// readSchema parses a schema as it can be offered to a model. A missing one accepts any object.
func readSchema(text json.RawMessage) (s schema, err error) {
	if len(text) == 0 {
		return s, nil
	}
	if len(text) > limit.Result {
		return s, errSchema
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%w: %w", errSchema, err)
	}
	if s.Type != "object" {
		return s, errSchema
	}
	return s, nil
}

var errSchema = fmt.Errorf("a schema of arguments is a JSON Schema of type object and at most %d bytes", limit.Result)

// fits checks arguments against a schema: required ones are present, and known ones have
// an allowed type and value.
func fits(text json.RawMessage, args map[string]any) error {
	s, err := readSchema(text)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrArguments, err)
	}
	for _, name := range s.Required {
		if _, given := args[name]; !given {
			return fmt.Errorf("%w: %.40s is missing", ErrArguments, name)
		}
	}
	for name, value := range args {
		p := s.Properties[name]
		if len(p.Type) > 0 && !slices.ContainsFunc(p.Type, func(kind string) bool { return isOf(kind, value) }) {
			return fmt.Errorf("%w: %.40s is no %.60s", ErrArguments, name, p.Type)
		}
		if len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(one any) bool { return reflect.DeepEqual(one, value) }) {
			return fmt.Errorf("%w: %.40s is none of its values", ErrArguments, name)
		}
	}
	return nil
}

// isOf reports whether a decoded JSON value is of a JSON Schema type.
func isOf(kind string, value any) bool {
	switch v := value.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return kind == "null"
}
