package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
)

// columns returns the cells of a row in the table, in the order of heads.
func (r result) columns() []string {
	bound, met, was, note := "≥ ", "yes", "", ""
	if r.isMax {
		bound = "≤ "
	}
	if !r.met {
		met, note = "no", r.why
	}
	if r.compared {
		was = text(r.was, r.unit)
	}
	measured := text(r.measured, r.unit)
	if r.absent {
		measured, note = "none", "the benchmark failed"
	}
	if r.worse {
		note = strings.TrimSuffix("WORSE; "+note, "; ")
	}
	return []string{r.name, measured, bound + text(r.goal, r.unit), met, was, note}
}

// heads returns the headings of the columns. The last column is a note.
func heads() []string { return []string{"", "measured", "goal", "met", "baseline", ""} }

// table formats the results for a terminal.
func table(results []result) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(heads(), "\t"))
	for _, r := range results {
		fmt.Fprintln(w, strings.Join(r.columns(), "\t"))
	}
	_ = w.Flush() // writes to a strings.Builder cannot fail
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

// The text between these two lines of the page is generated.
const (
	start = "<!-- make bench writes what follows -->\n"
	end   = "<!-- make bench has written this -->\n"
)

// replaceFigures returns the page with new figures between the lines start and end. It returns an
// error if the page lacks one of these lines.
func replaceFigures(page, figures string) (string, error) {
	before, after, found := strings.Cut(page, start)
	_, after, ended := strings.Cut(after, end)
	if !found || !ended {
		return "", errors.New("the page has no place for the figures: it needs the lines " + strings.TrimSpace(start) + " and " + strings.TrimSpace(end))
	}
	return before + start + figures + end + after, nil
}

// talkTable returns a Markdown table of the resources that simultaneous conversations use.
func (f figures) talkTable() string {
	out := "| robots that talk at once | gap between packets, p99 | processors in use | of libopus alone |\n|---|---|---|---|\n"
	for _, robots := range talkCounts() {
		out += fmt.Sprint("| ", robots)
		for _, m := range [][2]string{{"ms-gap-p99", "ms"}, {"cores", ""}, {"cores-bare", ""}} {
			v, _ := f.median(fmt.Sprint("BenchmarkTalk/", robots), m[0]) // 0 if the benchmark failed, which the other table shows
			out += " | " + text(v, m[1])
		}
		out += " |\n"
	}
	return out
}
