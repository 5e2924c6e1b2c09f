package config

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Fault is one fault of a configuration, by its place.
type Fault struct {
	Line    int    `json:"line,omitempty"` // in the text; 0 is that of no line
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

var ofKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([a-z_]+(?:\.[\w-]+)*): `) })

// mostFaults bounds those that are shown of one text.
const mostFaults = 200

// at are the faults of a file by their places, without its name.
func (f Faults) at(file string) []Fault {
	all := []Fault{}
	for _, text := range f[:min(len(f), mostFaults)] {
		one := Fault{Message: text}
		if rest, ok := strings.CutPrefix(text, file+":"); ok {
			number, after, _ := strings.Cut(rest, ":")
			if line, err := strconv.Atoi(number); err == nil {
				one.Line, rest = line, after
			}
			one.Message = strings.TrimSpace(rest)
		}
		if m := ofKey().FindStringSubmatch(one.Message); m != nil {
			one.Key, one.Message = m[1], one.Message[len(m[0]):]
		}
		all = append(all, one)
	}
	return all
}
