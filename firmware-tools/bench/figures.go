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

// figures maps each metric to its measured values, one for each time that the benchmark has run.
type figures map[figureKey][]float64

// figureKey identifies a metric of a benchmark.
type figureKey struct{ benchmark, metric string }

// processors matches the number of processors that go test appends to the name of a benchmark.
var processors = regexp.MustCompile(`-\d+$`)

// read adds the figures in the output of go test -bench. The output contains a line for each benchmark,
// with its name, the number of iterations, and pairs of a figure and its unit.
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
				return fmt.Errorf("%s: %q is not a number", words[0], words[i])
			}
			f[figureKey{name, words[i+1]}] = append(f[figureKey{name, words[i+1]}], value)
		}
	}
	return lines.Err()
}

// median returns the median of a metric, or false if it was not measured.
func (f figures) median(benchmark, metric string) (float64, bool) {
	values := slices.Sorted(slices.Values(f[figureKey{benchmark, metric}]))
	if len(values) == 0 {
		return 0, false
	}
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2, true
}

// baseline holds the figures of an earlier run for comparison.
type baseline struct {
	Machine string             `json:"machine"`
	Commit  string             `json:"commit"`
	Figures map[string]float64 `json:"figures"` // key: name of the row
}

// result is a row with its measured figure.
type result struct {
	row
	measured float64 // median
	absent   bool    // the figure was not measured
	met      bool    // the goal is met
	was      float64 // figure in the baseline
	compared bool    // the figure was compared with the baseline
	worse    bool    // the figure is worse than the baseline by worseFactor or more
}

// worseFactor is how many times worse than the baseline a figure must be to count as an error.
const worseFactor = 1.25

// judge compares the median of a row with its goal and with the baseline. Times and rates are
// compared only if the baseline is from the same machine. A figure that is zero in the
// baseline, such as late packets, must stay zero.
func (f figures) judge(r row, base baseline, machine string) result {
	res := result{row: r}
	measured, ok := f.median(r.benchmark, r.metric)
	res.measured, res.absent = measured, !ok
	res.was, res.compared = base.Figures[r.name], ok && (machine == base.Machine || r.isPortable())
	if _, hasBaseline := base.Figures[r.name]; !hasBaseline {
		res.compared = false
	}
	switch {
	case !ok:
	case r.isMax:
		res.met, res.worse = measured <= r.goal, res.compared && measured > res.was && measured >= res.was*worseFactor
	default:
		res.met, res.worse = measured >= r.goal, res.compared && measured <= res.was/worseFactor
	}
	return res
}

// isPortable reports whether the figure can be compared with the figure of another machine, unlike times
// and rates.
func (r row) isPortable() bool { return !slices.Contains([]string{"ms", "µs", "ns", "/s"}, r.unit) }

// text formats a figure with at most two decimals. It shows at most three significant digits, or
// the integer part if that has more.
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
