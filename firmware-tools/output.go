package main

import (
	"fmt"
	"io"
	"strings"
)

// output prints the steps of a command, each as a line of text or as a JSON object.
type output struct {
	to   io.Writer
	json bool // print JSON objects
}

// line prints a step with its actor, for example line("robot", "joins", "Home").
func (o output) line(actor, action, text string) {
	if o.json {
		o.object(map[string]string{"who": actor, "does": action, "text": text})
		return
	}
	fmt.Fprintln(o.to, strings.TrimRight(fmt.Sprintf("%-6s %-9s %s", actor, action, text), " "))
}

// step prints a step without an actor, for example step("saved", "%d bytes", n).
func (o output) step(step, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if o.json {
		o.object(map[string]string{"step": step, "text": text})
		return
	}
	fmt.Fprintf(o.to, "%-9s %s\n", step, text)
}

// object prints a value as one line of JSON.
func (o output) object(value any) { fmt.Fprintf(o.to, "%s\n", encodeJSON(value)) }
