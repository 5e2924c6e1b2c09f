package thinker

import (
	"encoding/json"
	"maps"
	"slices"
)

// completeSchema returns a tool's schema in the form that strict servers require: every object has
// properties, only these properties are required, and every array has items. A schema whose type is
// not object, or that is not JSON, is returned unchanged.
func completeSchema(schema json.RawMessage) json.RawMessage {
	var object map[string]any
	if json.Unmarshal(schema, &object) != nil || object == nil || object["type"] != nil && object["type"] != "object" {
		return schema
	}
	object["type"] = "object"
	completed, err := json.Marshal(complete(object))
	if err != nil {
		return schema // cannot happen: object was decoded from JSON
	}
	return completed
}

// complete completes a part of a schema in place, and returns it.
func complete(part map[string]any) map[string]any {
	properties, isObject := part["properties"].(map[string]any)
	if part["properties"] != nil && !isObject {
		return part // invalid for every server
	}
	kind := typeOf(part)
	if kind == "object" && !isObject {
		properties, isObject = map[string]any{}, true
		part["properties"] = properties
	}
	if kind == "" && isObject {
		part["type"] = "object"
	}
	for name, value := range properties {
		switch value := value.(type) {
		case map[string]any:
			properties[name] = complete(value)
		default: // the schema true, which allows any value
			properties[name] = map[string]any{}
		}
	}
	if required, is := part["required"].([]any); is {
		existing := slices.DeleteFunc(slices.Clone(required), func(name any) bool {
			text, _ := name.(string)
			_, exists := properties[text]
			return !exists
		})
		if part["required"] = existing; len(existing) == 0 {
			delete(part, "required")
		}
	}
	switch items := part["items"].(type) {
	case map[string]any:
		part["items"] = complete(items)
	case nil:
		if kind == "array" {
			part["items"] = map[string]any{}
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		choices, _ := part[key].([]any)
		for i, choice := range choices {
			if choice, is := choice.(map[string]any); is {
				choices[i] = complete(choice)
			}
		}
	}
	for _, key := range []string{"$defs", "definitions"} {
		defined, _ := part[key].(map[string]any)
		for _, name := range slices.Collect(maps.Keys(defined)) {
			if d, is := defined[name].(map[string]any); is {
				defined[name] = complete(d)
			}
		}
	}
	return part
}

// typeOf returns the type of a part of a schema. If the part may have several types, it returns
// object or array, or "" if neither is among them.
func typeOf(part map[string]any) string {
	switch kind := part["type"].(type) {
	case string:
		return kind
	case []any:
		for _, k := range kind {
			if k == "object" || k == "array" {
				return k.(string)
			}
		}
	}
	return ""
}
