package main

import (
	"fmt"
	"io"
	"strings"
)

// lines prints what a command does, a line for each step, or a JSON object.
type lines struct {
	to   io.Writer
	json bool
}

// line prints who does what.
func (l lines) line(who, does, text string) {
	if l.json {
		l.object(map[string]string{"who": who, "does": does, "text": text})
		return
	}
	fmt.Fprintln(l.to, strings.TrimRight(fmt.Sprintf("%-6s %-9s %s", who, does, text), " "))
}

// step prints a step of a command that acts alone.
func (l lines) step(step, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if l.json {
		l.object(map[string]string{"step": step, "text": text})
		return
	}
	fmt.Fprintf(l.to, "%-9s %s\n", step, text)
}

func (l lines) object(value any) { fmt.Fprintf(l.to, "%s\n", encoded(value)) }
