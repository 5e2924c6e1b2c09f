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

// memoryPath is the path of the memory in the admin API.
const memoryPath = "/api/v1/memory"

func memoryListCommand() *cobra.Command {
	r, query := &target{}, url.Values{}
	var kind string
	var tags []string
	command := r.register(&cobra.Command{
		Use:   "list [WORD]...",
		Short: "List what the agent remembers, important and recently used entries first; with words, only entries that contain all of them",
		Example: `perch memory list
			perch memory list green tea
			perch memory list --type feedback --tag lamp`,
		RunE: func(c *cobra.Command, args []string) error {
			var list []agent.Ranked
			query["q"], query["type"], query["tag"] = []string{strings.Join(args, " ")}, []string{kind}, tags
			return r.callAndPrint(c, http.MethodGet, memoryPath+"?"+query.Encode(), nil, &list, func(out io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(out, "no entries")
				}
				for _, e := range list {
					fmt.Fprintf(out, "%s  %s  %s\n", plain.Text(e.ID), e.Created.Local().Format(time.DateTime), plain.Text(cmp.Or(e.Body, e.Name)))
				}
			})
		},
	})
	command.Flags().StringVar(&kind, "type", "", "only entries of this type: "+strings.Join(agent.MemoryTypes(), ", "))
	command.Flags().StringArrayVar(&tags, "tag", nil, "only entries with this tag; repeatable, for entries that have all of the tags")
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

func memoryAddCommand() *cobra.Command {
	r, fact, expires := &target{}, factBody{}, ""
	c := r.register(&cobra.Command{
		Use:   "add TEXT...",
		Short: "Make the agent remember a fact",
		Long:  "The command prints the ID of the entry.",
		Example: `perch memory add "Anna drinks green tea"
			perch memory add --type feedback --tag lamp --tag evening "no bright light in the evening"
			perch memory add --type project --expires 2027-06-30 "the kitchen is being rebuilt"`,
		RunE: func(c *cobra.Command, args []string) error {
			at, err := expiry(expires, time.Now())
			if err != nil {
				return err
			}
			fact.Text, fact.Expires = strings.Join(args, " "), at
			var entry agent.Entry
			return r.callAndPrint(c, http.MethodPost, memoryPath, fact, &entry, func(out io.Writer) { fmt.Fprintln(out, plain.Text(entry.ID)) })
		},
	})
	s := c.Flags()
	s.StringVar(&fact.Type, "type", "", "the `TYPE` of the entry: "+strings.Join(agent.MemoryTypes(), ", ")+"; without it, "+agent.MemoryUser)
	s.StringArrayVar(&fact.Tags, "tag", nil, "a tag of the entry; repeatable")
	s.BoolVar(&fact.Important, "important", false, "give the entry the highest importance: it is listed first and kept longest")
	s.StringVar(&expires, "expires", "", "`WHEN` the entry is forgotten: a day such as 2027-06-30, a time such as 2027-06-30T18:00:00Z, or 36h from now; without it, never")
	return c
}

// expiry converts the value of --expires, which is a day, a time or a duration from now, to RFC 3339.
func expiry(text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	at, err := time.ParseInLocation(time.DateOnly, text, now.Location())
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		var d time.Duration
		d, err = time.ParseDuration(text)
		at = now.Add(d)
	}
	if err != nil || !at.After(now) {
		return "", command.Usagef("--expires %q is not a future time such as 2027-06-30, 2027-06-30T18:00:00Z or 36h", text)
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
			return r.callAndPrint(c, http.MethodGet, memoryPath+"/stats", nil, &s, func(out io.Writer) {
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

func memoryShowCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "show ID",
		Short: "Show an entry of the memory",
		RunE: func(c *cobra.Command, args []string) error {
			var list []agent.Entry
			if err := r.call(c, http.MethodGet, memoryPath, nil, &list); err != nil {
				return err
			}
			i := slices.IndexFunc(list, func(e agent.Entry) bool { return e.ID == args[0] })
			if i < 0 {
				return fmt.Errorf("%w; perch memory list shows the IDs", agent.ErrNoEntry)
			}
			return r.print(c, list[i], func(out io.Writer) { writeEntry(out, list[i]) })
		},
	})
}

// writeEntry prints an entry of the memory, with a line for each field that is not empty.
func writeEntry(out io.Writer, e agent.Entry) {
	format := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Local().Format(time.DateTime)
	}
	writeLines(out, [][2]string{
		{"id", e.ID}, {"name", e.Name}, {"type", e.Type}, {"text", e.Body}, {"note", e.Description}, {"tags", strings.Join(e.Tags, ", ")},
		{"important", map[bool]string{true: "yes"}[e.Important]}, {"robot", string(e.Robot)}, {"source", e.Source}, {"created", format(e.Created)}, {"used", format(e.Used)}, {"expires", format(e.Expires)},
	})
}

func memoryForgetCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "forget ID",
		Short: "Delete an entry of the memory",
		RunE: func(c *cobra.Command, args []string) error {
			var result struct {
				OK bool `json:"ok"`
			}
			return r.callAndPrint(c, http.MethodDelete, memoryPath+"/"+url.PathEscape(args[0]), nil, &result, func(out io.Writer) {
				fmt.Fprintf(out, "%s is forgotten\n", plain.Text(args[0]))
			})
		},
	})
}
