package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"perch/limit"
)

// schema is the part of a JSON Schema of type object that this package checks. The tool
// itself has to check the rest.
type schema struct {
	Type       string
	Required   []string
	Properties map[string]property
}

// property is the schema of one argument. The zero value permits every value.
type property struct {
	Type types
	Enum []any
}

// UnmarshalJSON parses the schema of an argument. The schemas true and false become the
// zero value.
func (p *property) UnmarshalJSON(text []byte) error {
	var b bool
	if json.Unmarshal(text, &b) == nil {
		return nil
	}
	type plain property
	return json.Unmarshal(text, (*plain)(p))
}

// types is a list of permitted JSON types. An empty list permits all types.
type types []string

// UnmarshalJSON parses one type or a list of types.
func (t *types) UnmarshalJSON(text []byte) error {
	var name string
	if json.Unmarshal(text, &name) == nil {
		*t = types{name}
	} else if json.Unmarshal(text, (*[]string)(t)) != nil {
		return errors.New("type is a word or a list of words")
	}
	for _, name := range *t {
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "object", "array", "null"}, name) {
			return fmt.Errorf("%.40q is not a type of JSON Schema", name)
		}
	}
	return nil
}

// parseSchema parses the schema of a tool's arguments. An empty text permits every object.
// An invalid schema is an error, because models would reject the tool.
func parseSchema(text json.RawMessage) (s schema, err error) {
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

// checkArguments checks that all arguments required by a schema are present, and that the
// arguments listed in the schema have a permitted type and value. Errors wrap ErrArguments.
func checkArguments(text json.RawMessage, args map[string]any) error {
	s, err := parseSchema(text)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrArguments, err)
	}
	for _, name := range s.Required {
		if _, ok := args[name]; !ok {
			return fmt.Errorf("%w: %.40s is missing", ErrArguments, name)
		}
	}
	for name, value := range args {
		p := s.Properties[name]
		if len(p.Type) > 0 && !slices.ContainsFunc(p.Type, func(name string) bool { return hasType(value, name) }) {
			return fmt.Errorf("%w: %.40s is not of type %.60s", ErrArguments, name, p.Type)
		}
		if len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(permitted any) bool { return reflect.DeepEqual(permitted, value) }) {
			return fmt.Errorf("%w: %.40s does not have one of the permitted values", ErrArguments, name)
		}
	}
	return nil
}

// hasType reports whether a decoded JSON value has a JSON Schema type.
func hasType(value any, name string) bool {
	switch v := value.(type) {
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case float64:
		return name == "number" || name == "integer" && v == float64(int64(v))
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return name == "null"
}
