// Command bench runs the repository's benchmarks and prints the figures that have goals. It fails if a
// benchmark fails, or if a figure is much worse than in an earlier run, the baseline. Without the flags
// -only and -profile it also writes the figures to docs/performance.md. make bench runs it in the root
// of the repository.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Files in the repository.
const (
	outputFile   = "bin/bench.txt" // output of all benchmarks
	profiles     = "bin/profiles"  // folder for profiles
	baselineFile = "firmware-tools/bench/baseline.json"
	pageFile     = "docs/performance.md"
	program      = "bin/perch" // program that the benchmarks run
)

// maxLoad is the maximum average number of other programs that run or wait for a processor. With
// more of them the figures mean little.
const maxLoad = 2

// settings are the flags of the program.
type settings struct {
	only    *regexp.Regexp // must match the names of rows; nil for all rows
	any     bool           // accept any load by other programs
	all     bool           // include runs without rows
	count   int            // number of rounds
	profile bool           // write profiles
	keep    bool           // store the figures as the new baseline, even if they are worse
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, flags())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// flags parses the flags.
func flags() (s settings) {
	flag.Func("only", "measure only rows with names that match this regular expression", func(v string) (err error) {
		if v != "" {
			s.only, err = regexp.Compile("(?i)" + v)
		}
		return err
	})
	flag.Func("load", "any: measure in spite of other running programs", func(v string) error {
		if s.any = v == "any"; !s.any && v != "" {
			return errors.New("the only valid value is any")
		}
		return nil
	})
	flag.BoolVar(&s.all, "all", false, "also run the benchmarks without goals")
	flag.IntVar(&s.count, "count", 1, "number of rounds; their median is used")
	flag.BoolVar(&s.profile, "profile", false, "write profiles to "+profiles)
	flag.BoolVar(&s.keep, "keep", false, "store the figures as the new baseline")
	flag.Parse()
	return s
}

// selected returns the runs to carry out, each with only the rows that s.only selects.
func (s settings) selected() (runs []run) {
	for _, r := range allRuns() {
		if s.only != nil {
			r.rows = slices.DeleteFunc(r.rows, func(r row) bool { return !s.only.MatchString(r.name) })
		}
		if len(r.rows) > 0 || s.all {
			runs = append(runs, r)
		}
	}
	return runs
}

// bench runs the selected benchmarks and reports their figures.
func bench(ctx context.Context, s settings) error {
	runs := s.selected()
	if len(runs) == 0 {
		return errors.New("no row has such a name")
	}
	base := baseline{Figures: map[string]float64{}}
	stored, err := os.ReadFile(baselineFile)
	if err == nil {
		err = json.Unmarshal(stored, &base)
	}
	if err != nil {
		return fmt.Errorf("read the baseline: %w", err)
	}
	t, err := compile(ctx, runs)
	if err != nil {
		return err
	}
	defer t.remove()
	load, err := otherLoad(ctx, 5*time.Second)
	if err != nil {
		return err
	}
	loadNote := fmt.Sprintf("Before the run, %s other programs on average wanted a processor.", text(load, ""))
	if load > maxLoad && !s.any {
		return fmt.Errorf("%s\nWith so much load the figures mean little. End these programs, or ignore them: make bench LOAD=any", loadNote)
	}
	fmt.Println(loadNote)
	began, machine, commit := time.Now().UTC(), machine(), commit(ctx)
	out, err := os.Create(outputFile)
	if err != nil {
		return err
	}
	defer out.Close()
	measured := figures{}
	failed, err := t.measure(ctx, runs, s.count, s.profile, measured, out)
	if err != nil {
		return err
	}
	// Measure the runs with worse figures two more times, because another program may have disturbed
	// the first measurement.
	var worse []run
	for _, r := range runs {
		if slices.ContainsFunc(r.rows, func(r row) bool { return measured.judge(r, base, machine).worse }) {
			worse = append(worse, r)
		}
	}
	if !s.profile && !s.keep {
		moreFailed, err := t.measure(ctx, worse, 2, false, measured, out)
		if err != nil {
			return err
		}
		failed = append(failed, moreFailed...)
	}

	var results []result
	for _, run := range runs {
		for _, r := range run.rows {
			results = append(results, measured.judge(r, base, machine))
		}
	}
	fmt.Printf("\n%s\n%s\n", table(results), loadNote)
	switch {
	case s.profile:
		fmt.Println("The profiles are in " + profiles + "; go tool pprof reads them. Figures measured with profiles are not checked.")
		return nil
	case s.only == nil:
		header := fmt.Sprintf("Measured on %s at commit %s, on %s, in %d round(s). %s", began.Format("2 January 2006, 15:04 MST"), commit, machine,
			s.count, loadNote)
		if err := updatePage(header + "\n\n" + markdown(results) + "\n" + measured.talkTable()); err != nil {
			return err
		}
	}
	if s.keep {
		return errors.Join(saveBaseline(baseline{machine, commit, base.Figures}, results), verdict(nil, failed))
	}
	return verdict(results, failed)
}

// verdict returns an error that lists the rows that are worse than the baseline and the benchmarks
// that failed. It returns nil if both lists are empty.
func verdict(results []result, failed []string) error {
	var worse []string
	for _, r := range results {
		if r.worse {
			worse = append(worse, fmt.Sprintf("%s: %s, previously %s", r.name, text(r.measured, r.unit), text(r.was, r.unit)))
		}
	}
	var errs []error
	if len(worse) > 0 {
		errs = append(errs, fmt.Errorf("worse by a quarter or more: %s", strings.Join(worse, "; ")))
	}
	if len(failed) > 0 {
		errs = append(errs, fmt.Errorf("failed: %s", strings.Join(failed, "; ")))
	}
	return errors.Join(errs...)
}

// saveBaseline stores the measured figures as the new baseline. Rows that were not measured keep
// their figures in b.
func saveBaseline(b baseline, results []result) error {
	for _, r := range results {
		if !r.absent {
			b.Figures[r.name] = r.measured
		}
	}
	text, err := json.MarshalIndent(b, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(baselineFile, append(text, '\n'), 0o644)
}

// updatePage writes figures to the page pageFile.
func updatePage(figures string) error {
	page, err := os.ReadFile(pageFile)
	if err != nil {
		return err
	}
	text, err := replaceFigures(string(page), figures)
	if err != nil {
		return err
	}
	return os.WriteFile(pageFile, []byte(text), 0o644)
}

// commit returns the repository's current commit, with a "+" if files have changed since, or
// "unknown" if git fails.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty=+", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
