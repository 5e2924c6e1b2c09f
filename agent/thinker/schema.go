package thinker

import (
	"encoding/json"
	"maps"
	"slices"
)

// completeSchema returns a tool's schema with what strict servers ask for: an object has
// properties and requires only these, and a list has items. What is not the schema of an object is
// returned unchanged.
func completeSchema(schema json.RawMessage) json.RawMessage {
	var object map[string]any
	if json.Unmarshal(schema, &object) != nil || object == nil || object["type"] != nil && object["type"] != "object" {
		return schema
	}
	object["type"] = "object"
	completed, err := json.Marshal(complete(object))
	if err != nil {
		return schema // it was decoded from JSON
	}
	return completed
}

// complete does the same for a part of a schema.
func complete(part map[string]any) map[string]any {
	properties, isObject := part["properties"].(map[string]any)
	if part["properties"] != nil && !isObject {
		return part // no server takes it
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
		default: // true allows anything
			properties[name] = map[string]any{}
		}
	}
	if required, is := part["required"].([]any); is {
		known := slices.DeleteFunc(slices.Clone(required), func(name any) bool {
			text, _ := name.(string)
			_, there := properties[text]
			return !there
		})
		if part["required"] = known; len(known) == 0 {
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

// typeOf returns the type of a part of a schema; of several types, the type with parts.
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
