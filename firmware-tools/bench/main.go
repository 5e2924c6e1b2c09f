// Bench measures the appliance: it runs the repository's benchmarks, prints the figures that
// have goals, and fails if one is worse than the baseline. make bench runs it in the
// repository.
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

// Files and benchmarks of the repository.
const (
	outputFile   = "bin/bench.txt" // everything that the benchmarks print
	profiles     = "bin/profiles"
	baselineFile = "firmware-tools/bench/baseline.json"
	pageFile     = "docs/performance.md"
	program      = "bin/perch"
)

// quiet is the accepted average number of other running programs.
const quiet = 2

// settings are the flags of the program.
type settings struct {
	only    *regexp.Regexp // matched by names of rows; nil is all
	any     bool           // ignore other programs' load
	all     bool           // includes runs without rows
	count   int            // rounds
	profile bool
	keep    bool // store the figures as the baseline
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

func flags() (s settings) {
	flag.Func("only", "the rows whose names this regular expression matches", func(v string) (err error) {
		if v != "" {
			s.only, err = regexp.Compile("(?i)" + v)
		}
		return err
	})
	flag.Func("load", "any: measure however much runs beside", func(v string) error {
		if s.any = v == "any"; !s.any && v != "" {
			return errors.New("it is any, or not there")
		}
		return nil
	})
	flag.BoolVar(&s.all, "all", false, "also the benchmarks that are held to nothing")
	flag.IntVar(&s.count, "count", 1, "rounds; medians count")
	flag.BoolVar(&s.profile, "profile", false, "leave profiles in "+profiles)
	flag.BoolVar(&s.keep, "keep", false, "the figures become the baseline")
	flag.Parse()
	return s
}

// selected returns the requested runs, with the requested rows.
func (s settings) selected() (runs []run) {
	for _, r := range measured() {
		if s.only != nil {
			r.rows = slices.DeleteFunc(r.rows, func(r row) bool { return !s.only.MatchString(r.name) })
		}
		if len(r.rows) > 0 || s.all {
			runs = append(runs, r)
		}
	}
	return runs
}

func bench(ctx context.Context, s settings) error {
	runs := s.selected()
	if len(runs) == 0 {
		return errors.New("no row has such a name")
	}
	was := baseline{Figures: map[string]float64{}}
	stored, err := os.ReadFile(baselineFile)
	if err == nil {
		err = json.Unmarshal(stored, &was)
	}
	if err != nil {
		return fmt.Errorf("the baseline: %w", err)
	}
	b, err := compile(ctx, runs)
	if err != nil {
		return err
	}
	defer b.remove()
	load, err := otherLoad(ctx, 5*time.Second)
	if err != nil {
		return err
	}
	beside := fmt.Sprintf("Before, %s other programs wanted a processor on average.", text(load, ""))
	if load > quiet && !s.any {
		return fmt.Errorf("%s\nFigures beside that mean little; end it, or ask for them: make bench LOAD=any", beside)
	}
	fmt.Println(beside)
	began, machine, commit := time.Now().UTC(), machine(), commit(ctx)
	out, err := os.Create(outputFile)
	if err != nil {
		return err
	}
	defer out.Close()
	seen := figures{}
	failed, err := b.measure(ctx, runs, s.count, s.profile, seen, out)
	if err != nil {
		return err
	}
	// Rows that seem worse are measured twice more, since another program may have run.
	var doubtful []run
	for _, r := range runs {
		if slices.ContainsFunc(r.rows, func(r row) bool { return seen.judge(r, was, machine).worse }) {
			doubtful = append(doubtful, r)
		}
	}
	if !s.profile && !s.keep {
		again, err := b.measure(ctx, doubtful, 2, false, seen, out)
		if err != nil {
			return err
		}
		failed = append(failed, again...)
	}

	var results []result
	for _, run := range runs {
		for _, r := range run.rows {
			results = append(results, seen.judge(r, was, machine))
		}
	}
	fmt.Printf("\n%s\n%s\n", table(results), beside)
	switch {
	case s.profile:
		fmt.Println("The profiles are in " + profiles + "; go tool pprof reads them. Figures beside profiles count for nothing.")
		return nil
	case s.only == nil:
		how := fmt.Sprintf("Measured on %s at commit %s, on %s, in %d round(s). %s", began.Format("2 January 2006, 15:04 MST"), commit, machine,
			s.count, beside)
		if err := write(how + "\n\n" + markdown(results) + "\n" + seen.talkTable()); err != nil {
			return err
		}
	}
	if s.keep {
		return errors.Join(saveBaseline(baseline{machine, commit, was.Figures}, results), verdict(nil, failed))
	}
	return verdict(results, failed)
}

// verdict returns the error of a run: rows that are worse, and benchmarks that failed.
func verdict(results []result, failed []string) error {
	var back []string
	for _, r := range results {
		if r.worse {
			back = append(back, fmt.Sprintf("%s: %s, and %s before", r.name, text(r.seen, r.unit), text(r.was, r.unit)))
		}
	}
	var errs []error
	if len(back) > 0 {
		errs = append(errs, fmt.Errorf("fallen back by a quarter or more: %s", strings.Join(back, "; ")))
	}
	if len(failed) > 0 {
		errs = append(errs, fmt.Errorf("failed: %s", strings.Join(failed, "; ")))
	}
	return errors.Join(errs...)
}

// saveBaseline stores the figures as the baseline, and keeps those of rows that were not measured.
func saveBaseline(b baseline, results []result) error {
	for _, r := range results {
		if !r.absent {
			b.Figures[r.name] = r.seen
		}
	}
	text, err := json.MarshalIndent(b, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(baselineFile, append(text, '\n'), 0o644)
}

// write writes the page.
func write(figures string) error {
	page, err := os.ReadFile(pageFile)
	if err != nil {
		return err
	}
	text, err := replaced(string(page), figures)
	if err != nil {
		return err
	}
	return os.WriteFile(pageFile, []byte(text), 0o644)
}

// commit returns the repository's commit, with a plus if files have changed.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty=+", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
