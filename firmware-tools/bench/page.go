package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
)

// columns returns a row's cells: its name, the figure, the goal, whether it is met, the
// baseline, and a remark.
func (r result) columns() []string {
	bound, met, was, note := "≥ ", "yes", "", ""
	if r.most {
		bound = "≤ "
	}
	if !r.met {
		met, note = "no", r.why
	}
	if r.compared {
		was = text(r.was, r.unit)
	}
	seen := text(r.seen, r.unit)
	if r.absent {
		seen, note = "none", "the benchmark failed"
	}
	if r.worse {
		note = strings.TrimSuffix("FALLEN BACK; "+note, "; ")
	}
	return []string{r.name, seen, bound + text(r.goal, r.unit), met, was, note}
}

// heads returns the headings of these columns.
func heads() []string { return []string{"", "seen", "goal", "met", "baseline", ""} }

// table formats the results for a terminal.
func table(results []result) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(heads(), "\t"))
	for _, r := range results {
		fmt.Fprintln(w, strings.Join(r.columns(), "\t"))
	}
	_ = w.Flush() // a strings.Builder does not fail
	return out.String()
}

// markdown formats the results for the page.
func markdown(results []result) string {
	line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	out := line(heads()) + "|---|---|---|---|---|---|\n"
	for _, r := range results {
		out += line(r.columns())
	}
	return out
}

// The text between these lines of the page is generated.
const (
	start = "<!-- make bench writes what follows -->\n"
	end   = "<!-- make bench has written this -->\n"
)

// replaced returns a page with new figures.
func replaced(page, figures string) (string, error) {
	before, after, found := strings.Cut(page, start)
	_, after, ended := strings.Cut(after, end)
	if !found || !ended {
		return "", errors.New("the page has no place for the figures: the lines " + strings.TrimSpace(start) + " and " + strings.TrimSpace(end))
	}
	return before + start + figures + end + after, nil
}

// talkTable returns a table of the resources that simultaneous talks use.
func (f figures) talkTable() string {
	out := "| robots that talk at once | gap between packets, p99 | processors in use | of libopus alone |\n|---|---|---|---|\n"
	for _, robots := range talkCounts() {
		out += fmt.Sprint("| ", robots)
		for _, m := range [][2]string{{"ms-gap-p99", "ms"}, {"cores", ""}, {"cores-bare", ""}} {
			v, _ := f.median(fmt.Sprint("BenchmarkTalk/", robots), m[0]) // failures are in the other table
			out += " | " + text(v, m[1])
		}
		out += " |\n"
	}
	return out
}
