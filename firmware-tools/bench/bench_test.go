package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perch/must"
)

// printed is an example of the output of go test -bench.
const printed = `goos: linux
cpu: Some Processor
BenchmarkTalk/10-2         	       1	22000000 ns/op	        61.50 ms-gap-p99	         0 times-dry
some line of a log
BenchmarkTalk/10-2         	       1	22000000 ns/op	        64.50 ms-gap-p99	         2 times-dry
BenchmarkCheckIn-16        	    4000	  200000 ns/op	      5300 check-ins/s
--- FAIL: BenchmarkStart
PASS
`

// measuredNow returns the figures in printed, and three rows for them.
func measuredNow(t *testing.T) (f figures, gap, late, rate row) {
	t.Helper()
	f = figures{}
	must.Succeed(t, f.read(strings.NewReader(printed)))
	return f, row{"gap", "BenchmarkTalk/10", "ms-gap-p99", "ms", maximum, 63, ""},
		row{"late", "BenchmarkTalk/10", "times-dry", "", maximum, 0, "it is a bench"},
		row{"rate", "BenchmarkCheckIn", "check-ins/s", "/s", minimum, 5000, ""}
}

func TestRead(t *testing.T) {
	f, gap, late, rate := measuredNow(t)
	for _, c := range []struct {
		row
		measured float64
		met      bool
	}{{gap, 63, true}, {late, 1, false}, {rate, 5300, true}} {
		if got := f.judge(c.row, baseline{}, ""); got.measured != c.measured || got.met != c.met || got.absent || got.compared || got.worse {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := f.judge(row{benchmark: "BenchmarkStart", metric: "ms/start", isMax: maximum, goal: 12}, baseline{}, ""); !got.absent || got.met {
		t.Errorf("a benchmark that failed: %+v", got)
	}
	if err := f.read(strings.NewReader("BenchmarkX-2 1 fast ns/op")); err == nil {
		t.Error("a word was a figure")
	}
}

// TestGate checks that a figure that is worse than the baseline by a quarter fails the run, even if
// the goal is met. In the table, was is the figure in the baseline, of is the machine of the baseline,
// and back reports whether the run fails.
func TestGate(t *testing.T) {
	f, gap, late, rate := measuredNow(t)
	const here, elsewhere = "this machine", "another"
	for _, c := range []struct {
		row
		was  float64
		of   string
		back bool
	}{
		{gap, 63, here, false}, {gap, 50.5, here, false}, {gap, 50.4, here, true}, {gap, 80, here, false}, {gap, 20, elsewhere, false},
		{rate, 5300, here, false}, {rate, 6600, here, false}, {rate, 6625, here, true}, {rate, 100, here, false}, {rate, 9000, elsewhere, false},
		{late, 1, here, false}, {late, 0, here, true}, {late, 0, elsewhere, true}, {late, 0.9, elsewhere, false},
	} {
		got := f.judge(c.row, baseline{Machine: c.of, Figures: map[string]float64{c.name: c.was}}, here)
		if got.worse != c.back {
			t.Errorf("%s was %v on %s: worse: %v", c.name, c.was, c.of, got.worse)
		}
		err := verdict([]result{got}, nil)
		if (err != nil) != c.back || c.back && (!strings.Contains(err.Error(), c.name) || !strings.Contains(table([]result{got}), "WORSE")) {
			t.Errorf("%s was %v on %s: %v", c.name, c.was, c.of, err)
		}
	}
	if err := verdict(nil, []string{"cmd/perch"}); err == nil {
		t.Error("a benchmark that failed fails nothing")
	}
}

// TestTheRows checks that the names of all rows differ, that the benchmark of each row exists, and that
// the run's regular expression matches the benchmark.
func TestTheRows(t *testing.T) {
	seen := map[string]bool{}
	for _, run := range allRuns() {
		top, _, _ := strings.Cut(run.benchmarks, "/")
		tests := testsOf(t, run.folder)
		for _, r := range run.rows {
			benchmark, _, _ := strings.Cut(r.benchmark, "/")
			if seen[r.name] || r.name == "" || !regexp.MustCompile(top).MatchString(benchmark) || strings.ContainsAny(r.name+r.why, "|\n") {
				t.Errorf("%+v of %s", r, run.benchmarks)
			}
			if !strings.Contains(tests, "func "+benchmark+"(") {
				t.Errorf("%s has no %s", run.folder, benchmark)
			}
			seen[r.name] = true
		}
	}
	must.Value(replaceFigures(read(t, "../../"+pageFile), ""))(t)
	s := settings{only: regexp.MustCompile("(?i)mqtt")}
	if runs := s.selected(); len(runs) != 1 || len(runs[0].rows) != 1 {
		t.Errorf("of MQTT there are %+v", runs)
	}
}

// testsOf returns the source text of a package's tests.
func testsOf(t *testing.T, folder string) (text string) {
	t.Helper()
	files := must.Value(filepath.Glob("../../" + folder + "/*_test.go"))(t)
	for _, file := range files {
		text += read(t, file)
	}
	return text
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := must.Value(os.ReadFile(path))(t)
	return string(text)
}
