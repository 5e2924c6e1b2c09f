package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perch/agent"
	"perch/command"
	"perch/plain"
)

// memoryAt is where the admin API has the memory.
const memoryAt = "/api/v1/memory"

func memoriesCommand() *cobra.Command {
	r, query := &target{}, url.Values{}
	var kind string
	var tags []string
	command := r.register(&cobra.Command{
		Use:   "list [WORD]...",
		Short: "List what the agent remembers, the most important first; with words, only the entries that contain each of them",
		Example: `perch memory list
			perch memory list green tea
			perch memory list --type feedback --tag lamp`,
		RunE: func(c *cobra.Command, args []string) error {
			var list []agent.Ranked
			query["q"], query["type"], query["tag"] = []string{strings.Join(args, " ")}, []string{kind}, tags
			return r.ask(c, http.MethodGet, memoryAt+"?"+query.Encode(), nil, &list, func(out io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(out, "nothing is remembered")
				}
				for _, e := range list {
					fmt.Fprintf(out, "%s  %s  %s\n", plain.Text(e.ID), e.Created.Local().Format(time.DateTime), plain.Text(cmp.Or(e.Body, e.Name)))
				}
			})
		},
	})
	command.Flags().StringVar(&kind, "type", "", "only entries of this type: "+strings.Join(agent.MemoryTypes(), ", "))
	command.Flags().StringArrayVar(&tags, "tag", nil, "only entries with this tag; given several times, with all of them")
	return command
}

// factBody is the body of a request to remember a fact.
type factBody struct {
	Text      string   `json:"text"`
	Type      string   `json:"type,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	Important bool     `json:"important,omitempty"`
	Expires   string   `json:"expires,omitempty"`
}

func addMemoryCommand() *cobra.Command {
	r, fact, expires := &target{}, factBody{}, ""
	c := r.register(&cobra.Command{
		Use:   "add TEXT...",
		Short: "Have the agent remember a fact",
		Long:  "It prints the id of the entry.",
		Example: `perch memory add "Anna drinks green tea"
			perch memory add --type feedback --tag lamp --tag evening "no bright light in the evening"
			perch memory add --type project --expires 2027-06-30 "the kitchen is being rebuilt"`,
		RunE: func(c *cobra.Command, args []string) error {
			at, err := expiry(expires, time.Now())
			if err != nil {
				return err
			}
			fact.Text, fact.Expires = strings.Join(args, " "), at
			var kept agent.Entry
			return r.ask(c, http.MethodPost, memoryAt, fact, &kept, func(out io.Writer) { fmt.Fprintln(out, plain.Text(kept.ID)) })
		},
	})
	s := c.Flags()
	s.StringVar(&fact.Type, "type", "", "its type, `TYPE`: "+strings.Join(agent.MemoryTypes(), ", ")+"; without it, "+agent.MemoryUser)
	s.StringArrayVar(&fact.Tags, "tag", nil, "a tag; given several times, all of them")
	s.BoolVar(&fact.Important, "important", false, "it matters more than all that is not")
	s.StringVar(&expires, "expires", "", "`WHEN` it is forgotten: a day such as 2027-06-30, a time such as 2027-06-30T18:00:00Z, or 36h from now; without it, never")
	return c
}

// expiry returns the moment that a day, a time or a duration names, in RFC 3339.
func expiry(text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	at, err := time.ParseInLocation(time.DateOnly, text, now.Location())
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		var lasts time.Duration
		lasts, err = time.ParseDuration(text)
		at = now.Add(lasts)
	}
	if err != nil || !at.After(now) {
		return "", command.Usagef("--expires %q is no time to come, such as 2027-06-30, 2027-06-30T18:00:00Z or 36h", text)
	}
	return at.Format(time.RFC3339Nano), nil
}

func memoryStatsCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "stats",
		Short: "Count what the agent remembers, by type and tag",
		RunE: func(c *cobra.Command, _ []string) error {
			var s agent.MemoryStats
			return r.ask(c, http.MethodGet, memoryAt+"/stats", nil, &s, func(out io.Writer) {
				fmt.Fprintf(out, "%d of at most %d entries, %d important\n", s.Entries, s.Most, s.Important)
				for _, counts := range []map[string]int{s.Types, s.Tags} {
					for _, name := range slices.Sorted(maps.Keys(counts)) {
						fmt.Fprintf(out, "%6d  %s\n", counts[name], plain.Text(name))
					}
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
			if err := r.call(c, http.MethodGet, memoryAt, nil, &list); err != nil {
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

// writeEntry prints an entry of the memory, a line for each field that has a value.
func writeEntry(out io.Writer, e agent.Entry) {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Local().Format(time.DateTime)
	}
	writeLines(out, [][2]string{
		{"id", e.ID}, {"name", e.Name}, {"type", e.Type}, {"text", e.Body}, {"note", e.Description}, {"tags", strings.Join(e.Tags, ", ")},
		{"important", map[bool]string{true: "yes"}[e.Important]}, {"robot", string(e.Robot)}, {"source", e.Source}, {"created", at(e.Created)}, {"used", at(e.Used)}, {"expires", at(e.Expires)},
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
				fmt.Fprintf(out, "%s is forgotten\n", plain.Text(args[0]))
			})
		},
	})
}
