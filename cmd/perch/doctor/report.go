package doctor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"perch/gateway/owner/admin"
)

// finding is one line of the report. Its note describes a part that works, or the cause of a fault and
// how to correct it.
type finding struct {
	Ok         bool
	Part, Note string
	warn       bool // the part works, but should be corrected
}

// mark returns the first word of the finding's line.
func (f finding) mark() string {
	switch {
	case !f.Ok:
		return "FAIL"
	case f.warn:
		return "WARN"
	}
	return "ok"
}

// MarshalJSON implements json.Marshaler.
func (f finding) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"is": strings.ToLower(f.mark()), "part": f.Part, "note": f.Note})
}

// rank orders faults before warnings, and warnings before parts that work.
func (f finding) rank() int { return slices.Index([]string{"FAIL", "WARN", "ok"}, f.mark()) }

// report collects findings.
type report struct{ Findings []finding }

// add adds a fault if err is not nil, or else a part that works with a note.
func (r *report) add(part string, err error, note string) {
	if err != nil {
		r.Findings = append(r.Findings, finding{Part: part, Note: err.Error()})
		return
	}
	r.Findings = append(r.Findings, finding{Ok: true, Part: part, Note: note})
}

// addIfReadable is like add, but does not report a fault if this user may not read the part's files.
func (r *report) addIfReadable(part string, err error, note string) {
	if errors.Is(err, fs.ErrPermission) {
		err, note = nil, "not checked: this user may not read it; use sudo perch doctor"
	}
	r.add(part, err, note)
}

// sorted returns the findings, faults first.
func (r *report) sorted() []finding {
	return slices.SortedStableFunc(slices.Values(r.Findings), func(a, b finding) int { return cmp.Compare(a.rank(), b.rank()) })
}

// Items returns the findings for the owner's page, faults first.
func (r *report) Items() (items []admin.Finding) {
	levels := map[string]string{"FAIL": "problem", "WARN": "warning", "ok": "ok"}
	for _, f := range r.sorted() {
		items = append(items, admin.Finding{Name: f.Part, OK: f.Ok, Level: levels[f.mark()], Note: cmp.Or(oneLine(f.Note), "works")})
	}
	return items
}

// Report prints the findings, faults first, and returns the number of faults.
func (r *report) Report(out io.Writer) (faults int) {
	sorted, width := r.sorted(), 0
	for _, f := range sorted {
		width = max(width, utf8.RuneCountInString(f.Part))
		if !f.Ok {
			faults++
		}
	}
	switch {
	case faults == 0:
		fmt.Fprintln(out, "Everything works:")
	case faults == 1:
		fmt.Fprintln(out, "1 fault, with its cure:")
	default:
		fmt.Fprintf(out, "%d faults, each with its cure:\n", faults)
	}
	for i, f := range sorted {
		if i == faults && faults > 0 {
			fmt.Fprint(out, "\nThe rest works:\n")
		}
		fmt.Fprintf(out, "%-4s  %-*s  %s\n", f.mark(), width, f.Part, cmp.Or(oneLine(f.Note), "works"))
	}
	return faults
}

// oneLine joins the lines of a note with semicolons.
func oneLine(note string) string {
	var parts []string
	for line := range strings.Lines(note) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, strings.TrimSuffix(line, ";"))
		}
	}
	return strings.Join(parts, "; ")
}

// countRobots returns a number of robots for a sentence: "no robot", "1 robot", "2 robots".
func countRobots(n int) string {
	switch n {
	case 0:
		return "no robot"
	case 1:
		return "1 robot"
	}
	return fmt.Sprintf("%d robots", n)
}
