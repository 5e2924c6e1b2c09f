package drivers

import (
	"strings"

	"perch/driver"
)

// Kind describes a driver for the documentation.
type Kind struct {
	List, Kind string
	Runs       []string // the programs and services that the driver uses
	Samples    []string // sample entries of List, in YAML
	Keys       []driver.Field
}

// Kinds returns the kinds of recognizers, synthesizers and brains.
func Kinds() []Kind {
	return append(append(kinds("speech.recognizers", Recognizers()), kinds("speech.synthesizers", Synthesizers())...), kinds("brains", Brains())...)
}

// kinds returns the kinds of one list.
func kinds[S, E any](list string, drivers driver.List[S, E]) (kinds []Kind) {
	for _, d := range drivers {
		kinds = append(kinds, Kind{list, d.Kind, d.Runs, strings.Split(d.Sample, "\n"), drivers.Fields(d.Kind)})
	}
	return kinds
}

// sampleMark begins the lines of cmd/perch/config/perch.yaml below which Sample inserts the kinds of
// a list.
const sampleMark = "# The kinds of "

// Sample inserts a sample entry and the keys of every kind of engine into the annotated
// configuration.
func Sample(annotated string) string {
	var b strings.Builder
	for line := range strings.Lines(annotated) {
		indent, list, isMark := strings.Cut(line, sampleMark)
		b.WriteString(line)
		for _, k := range Kinds() {
			if isMark && strings.HasPrefix(list, k.List+" ") {
				b.WriteString(k.comment(indent + "#   "))
			}
		}
	}
	return b.String()
}

// comment returns the sample entries and the keys of a kind as lines that begin with indent.
func (k Kind) comment(indent string) string {
	var b strings.Builder
	for _, s := range k.Samples {
		b.WriteString(indent + "- " + s + "\n")
	}
	for _, f := range k.Keys {
		line := indent + "    " + f.Key + ":"
		for word := range strings.FieldsSeq(f.Doc) {
			if len(line)+1+len(word) > 100 { // wrap lines at 100 bytes
				b.WriteString(line + "\n")
				line = indent + "      "
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
