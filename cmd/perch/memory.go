package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perch/agent"
	"perch/device"
)

// memoryAt is where the admin API has the memory.
const memoryAt = "/api/v1/memory"

func memoriesCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "list [WORD]...",
		Short: "List what the agent remembers, oldest first; with words, only the entries that contain each of them",
		Example: `perch memory list
			perch memory list green tea`,
		RunE: func(c *cobra.Command, args []string) error {
			var list []agent.Entry
			path := memoryAt + "?q=" + url.QueryEscape(strings.Join(args, " "))
			return r.ask(c, http.MethodGet, path, nil, &list, func(out io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(out, "nothing is remembered")
				}
				for _, e := range list {
					fmt.Fprintf(out, "%s  %s  %s\n", device.Plain(e.ID), e.Created.Local().Format(time.DateTime), device.Plain(cmp.Or(e.Body, e.Name)))
				}
			})
		},
	})
}

func memoryCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "show ID",
		Short: "Show an entry of the memory",
		RunE: func(c *cobra.Command, args []string) error {
			var list []agent.Entry
			if err := r.do(c, http.MethodGet, memoryAt, nil, &list); err != nil {
				return err
			}
			i := slices.IndexFunc(list, func(e agent.Entry) bool { return e.ID == args[0] })
			if i < 0 {
				return fmt.Errorf("%w; perch memory list has the ids", agent.ErrForgotten)
			}
			return r.print(c, list[i], func(out io.Writer) { writeEntry(out, list[i]) })
		},
	})
}

// writeEntry shows an entry of the memory, a line for each thing that is known of it.
func writeEntry(out io.Writer, e agent.Entry) {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Local().Format(time.DateTime)
	}
	writeLines(out, [][2]string{
		{"id", e.ID}, {"name", e.Name}, {"type", e.Type}, {"text", e.Body}, {"note", e.Description}, {"tags", strings.Join(e.Tags, ", ")},
		{"robot", string(e.Robot)}, {"source", e.Source}, {"created", at(e.Created)}, {"used", at(e.Used)}, {"expires", at(e.Expires)},
	})
}

func forgetMemoryCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "forget ID",
		Short: "Delete an entry of the memory",
		RunE: func(c *cobra.Command, args []string) error {
			done := struct {
				OK bool `json:"ok"`
			}{}
			return r.ask(c, http.MethodDelete, memoryAt+"/"+url.PathEscape(args[0]), nil, &done, func(out io.Writer) {
				fmt.Fprintf(out, "%s is forgotten\n", device.Plain(args[0]))
			})
		},
	})
}
