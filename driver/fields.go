package driver

import (
	"reflect"
	"strings"
)

// Field is a configuration key and the struct field that holds its value.
type Field struct {
	Key   string
	Doc   string // documentation; may be empty
	Value reflect.Value
	// Choices lists the possible values of a text, from the tag oneof, separated by spaces; nil if any text is possible.
	Choices []string
	Tag     reflect.StructTag
}

// Fields returns the keys of a section of the configuration. section is a struct, or a pointer or
// interface that holds a struct; for other values Fields returns nil. Each exported field has a
// key: its yaml tag, or its name in lower case. An inlined field is replaced by the fields of its
// struct that have a tag.
func Fields(section reflect.Value) []Field { return fields(section, false) }

// fields implements Fields. If tagged is true, it leaves out fields without a yaml tag.
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
			all = append(all, Field{Key: strings.ToLower(f.Name), Value: section.Field(i), Tag: f.Tag})
		case key != "":
			all = append(all, Field{key, f.Tag.Get("doc"), section.Field(i), strings.Fields(f.Tag.Get("oneof")), f.Tag})
		}
	}
	return all
}

// FieldsOf returns the keys of a driver's options: the fields with a yaml tag.
func FieldsOf(options any) []Field { return fields(reflect.ValueOf(options), true) }

// Value returns the value of a key in options, or the zero value if there is no such key or its type
// is not T.
func Value[T any](options any, key string) (value T) {
	for _, f := range FieldsOf(options) {
		if f.Key == key {
			value, _ = f.Value.Interface().(T)
		}
	}
	return value
}
