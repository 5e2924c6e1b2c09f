package driver

import (
	"reflect"
	"strings"
)

// Field is a key of a section of the configuration.
type Field struct {
	Key   string
	Doc   string // documentation; may be empty
	Value reflect.Value
}

// Fields returns the keys of a section: the exported fields of a struct, or of the struct that a
// pointer or an interface holds. The key of a field is its yaml tag, or its name in lower case as
// in package yaml. An inlined field is replaced by the tagged fields of its struct. Fields returns
// nil for other values.
func Fields(section reflect.Value) []Field { return fields(section, false) }

func fields(section reflect.Value, tagged bool) (all []Field) {
	for section.Kind() == reflect.Pointer || section.Kind() == reflect.Interface {
		section = section.Elem()
	}
	if section.Kind() != reflect.Struct {
		return nil
	}
	for i := range section.NumField() {
		f := section.Type().Field(i)
		switch key := f.Tag.Get("yaml"); {
		case !f.IsExported():
		case key == ",inline":
			all = append(all, fields(section.Field(i), true)...)
		case key == "" && !tagged:
			all = append(all, Field{strings.ToLower(f.Name), "", section.Field(i)})
		case key != "":
			all = append(all, Field{key, f.Tag.Get("doc"), section.Field(i)})
		}
	}
	return all
}

// FieldsOf returns the keys of a driver's options, which all have a tag.
func FieldsOf(options any) []Field { return fields(reflect.ValueOf(options), true) }

// Value returns the value of a key of options, or the zero value if they have no key of that type.
func Value[T any](options any, key string) (value T) {
	for _, f := range FieldsOf(options) {
		if f.Key == key {
			value, _ = f.Value.Interface().(T)
		}
	}
	return value
}
