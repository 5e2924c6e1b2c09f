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

// finding is one line of the report: something that works, or a cause and its cure.
type finding struct {
	Ok         bool
	Part, Note string
	warn       bool // it works, and should be corrected nevertheless
}

// mark returns the first word of the line.
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

// rank orders faults before warnings, and these before what works.
func (f finding) rank() int { return slices.Index([]string{"FAIL", "WARN", "ok"}, f.mark()) }

// report collects findings.
type report struct{ Findings []finding }

// add adds an error, or the note of a part that works if there is no error.
func (r *report) add(part string, err error, fine string) {
	if err != nil {
		r.Findings = append(r.Findings, finding{Part: part, Note: err.Error()})
		return
	}
	r.Findings = append(r.Findings, finding{Ok: true, Part: part, Note: fine})
}

// addRead is add for something that was read. That this user may not read it is no fault.
func (r *report) addRead(part string, err error, fine string) {
	if errors.Is(err, fs.ErrPermission) {
		err, fine = nil, "not looked at: this user may not read it; sudo perch doctor does"
	}
	r.add(part, err, fine)
}

// sorted returns the findings, faults first.
func (r *report) sorted() []finding {
	return slices.SortedStableFunc(slices.Values(r.Findings), func(a, b finding) int { return cmp.Compare(a.rank(), b.rank()) })
}

// Items returns the findings for the owner's page, faults first.
func (r *report) Items() (all []admin.Finding) {
	levels := map[string]string{"FAIL": "problem", "WARN": "warning", "ok": "ok"}
	for _, f := range r.sorted() {
		all = append(all, admin.Finding{Name: f.Part, OK: f.Ok, Level: levels[f.mark()], Note: cmp.Or(oneSentence(f.Note), "works")})
	}
	return all
}

// Report prints the findings, faults first, and returns the number of faults.
func (r *report) Report(out io.Writer) (faults int) {
	sorted, wide := r.sorted(), 0
	for _, f := range sorted {
		wide = max(wide, utf8.RuneCountInString(f.Part))
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
		fmt.Fprintf(out, "%-4s  %-*s  %s\n", f.mark(), wide, f.Part, cmp.Or(oneSentence(f.Note), "works"))
	}
	return faults
}

// oneSentence returns a note of several lines as one line.
func oneSentence(note string) string {
	var parts []string
	for line := range strings.Lines(note) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, strings.TrimSuffix(line, ";"))
		}
	}
	return strings.Join(parts, "; ")
}

// robots returns a number of robots in words.
func robots(n int) string {
	switch n {
	case 0:
		return "no robot"
	case 1:
		return "1 robot"
	}
	return fmt.Sprintf("%d robots", n)
}
