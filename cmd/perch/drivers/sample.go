package drivers

import (
	"strings"

	"perch/driver"
)

// Kind describes a driver for people.
type Kind struct {
	List, Kind string
	Runs       []string // the programs and services that it is for
	Samples    []string // entries of the configuration, in YAML
	Keys       []driver.Field
}

// Kinds returns all kinds, list by list.
func Kinds() []Kind {
	return append(append(kinds("speech.recognizers", Recognizers()), kinds("speech.synthesizers", Synthesizers())...), kinds("brains", Brains())...)
}

func kinds[S, E any](list string, of driver.List[S, E]) (all []Kind) {
	for _, d := range of {
		all = append(all, Kind{list, d.Kind, d.Runs, strings.Split(d.Sample, "\n"), of.Fields(d.Kind)})
	}
	return all
}

// sampleMark marks the lines of cmd/perch/config/perch.yaml below which Sample puts the kinds of a
// list.
const sampleMark = "# The kinds of "

// Sample returns the annotated configuration with an entry and the keys of every kind of engine.
func Sample(annotated string) string {
	var b strings.Builder
	for line := range strings.Lines(annotated) {
		indent, list, marked := strings.Cut(line, sampleMark)
		b.WriteString(line)
		for _, k := range Kinds() {
			if marked && strings.HasPrefix(list, k.List+" ") {
				b.WriteString(k.comment(indent + "#   "))
			}
		}
	}
	return b.String()
}

// comment returns the entries and the keys of a kind, each line after an indent.
func (k Kind) comment(indent string) string {
	var b strings.Builder
	for _, s := range k.Samples {
		b.WriteString(indent + "- " + s + "\n")
	}
	for _, f := range k.Keys {
		line := indent + "    " + f.Key + ":"
		for word := range strings.FieldsSeq(f.Doc) {
			if len(line)+1+len(word) > 100 {
				b.WriteString(line + "\n")
				line = indent + "      "
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
