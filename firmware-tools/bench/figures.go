package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// figures are the measurements: the values of all rounds by benchmark and metric.
type figures map[figure][]float64

type figure struct{ benchmark, metric string }

// processors matches the suffix that go test appends to the name of a benchmark.
var processors = regexp.MustCompile(`-\d+$`)

// read adds the figures of the output of go test -bench: a line per benchmark with its name,
// its number of runs, and pairs of a figure and its unit.
func (f figures) read(output io.Reader) error {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || len(words)%2 != 0 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := processors.ReplaceAllString(words[0], "")
		for i := 2; i < len(words); i += 2 {
			value, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return fmt.Errorf("%s: %q is no figure", words[0], words[i])
			}
			f[figure{name, words[i+1]}] = append(f[figure{name, words[i+1]}], value)
		}
	}
	return lines.Err()
}

// median returns the median of a metric, or false if there are no figures.
func (f figures) median(benchmark, metric string) (float64, bool) {
	all := slices.Sorted(slices.Values(f[figure{benchmark, metric}]))
	if len(all) == 0 {
		return 0, false
	}
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, true
}

// baseline has the figures of an earlier run to compare with.
type baseline struct {
	Machine string             `json:"machine"`
	Commit  string             `json:"commit"`
	Figures map[string]float64 `json:"figures"` // by the names of rows
}

// result is the outcome of a row.
type result struct {
	row
	seen     float64
	absent   bool // the figure is missing
	met      bool
	was      float64 // the baseline's figure
	compared bool    // compared with the baseline
	worse    bool    // worse by a quarter or more
}

// worseFactor is the smallest factor that counts as worse.
const worseFactor = 1.25

// judge compares a row with its goal and with the baseline. A figure of zero, such as late
// packets, must stay zero. Times of another machine are not compared.
func (f figures) judge(r row, was baseline, machine string) result {
	got := result{row: r}
	seen, there := f.median(r.benchmark, r.metric)
	got.seen, got.absent = seen, !there
	got.was, got.compared = was.Figures[r.name], there && (machine == was.Machine || r.anywhere())
	if _, known := was.Figures[r.name]; !known {
		got.compared = false
	}
	switch {
	case !there:
	case r.most:
		got.met, got.worse = seen <= r.goal, got.compared && seen > got.was && seen >= got.was*worseFactor
	default:
		got.met, got.worse = seen >= r.goal, got.compared && seen <= got.was/worseFactor
	}
	return got
}

// anywhere reports whether the figure is the same on every machine, unlike times and rates.
func (r row) anywhere() bool { return !slices.Contains([]string{"ms", "µs", "ns", "/s"}, r.unit) }

// text formats a figure with three digits, or all those before the point.
func text(v float64, unit string) string {
	digits := 0
	for size := v; digits < 2 && size > 0 && size < 100; size *= 10 {
		digits++
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return strings.TrimSpace(s + " " + unit)
}
