package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usage is a process and the processor time that it has used.
type usage struct {
	name  string
	ticks int
}

const tick = 10 * time.Millisecond // of Linux, for programs

// others watches the machine for a while: how many programs ran or waited for a processor
// on average, without this one, and the names and shares of those that used it most.
func others(ctx context.Context, during time.Duration) (load float64, busiest []string, err error) {
	before := processes()
	const every = 100 * time.Millisecond
	samples := int(during / every)
	for range samples {
		select {
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(every):
		}
		n, err := field("/proc/stat", "procs_running")
		if err != nil {
			return 0, nil, err
		}
		load += max(0, float64(n-1)) / float64(samples)
	}
	var used []usage
	for pid, now := range processes() {
		if pid != os.Getpid() {
			used = append(used, usage{now.name, now.ticks - before[pid].ticks})
		}
	}
	slices.SortFunc(used, func(a, b usage) int { return cmp.Compare(b.ticks, a.ticks) })
	for _, u := range used[:min(3, len(used))] {
		if share := 100 * float64(u.ticks) * tick.Seconds() / during.Seconds(); share >= 5 {
			busiest = append(busiest, fmt.Sprintf("%s (%.0f %%)", u.name, share))
		}
	}
	return load, busiest, nil
}

// processes are those of the machine that can be seen, by their numbers.
func processes() map[int]usage {
	all := map[int]usage{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, path := range stats {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, rest, _ := strings.Cut(string(line), " (")
		end := strings.LastIndexByte(rest, ')')
		n, err := strconv.Atoi(pid)
		if end < 0 || err != nil {
			continue
		}
		ticks := 0
		if fields := strings.Fields(rest[end+1:]); len(fields) > 13 {
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			ticks = user + system
		}
		all[n] = usage{rest[:end], ticks}
	}
	return all
}

// field is a number in a file of lines that begin with their names.
func field(path, name string) (int, error) {
	all, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(all)) {
		if words := strings.Fields(line); len(words) > 1 && strings.TrimSuffix(words[0], ":") == name {
			return strconv.Atoi(words[1])
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}

// busy is the processor time that all programs of the machine have used.
func busy() (time.Duration, error) {
	all, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	words := strings.Fields(string(all))
	ticks := 0
	for _, i := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		if i >= len(words) {
			return 0, fmt.Errorf("/proc/stat begins with %q", words)
		}
		n, err := strconv.Atoi(words[i])
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// machine is what the figures are of.
func machine() string {
	model := runtime.GOARCH
	if all, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(all)) {
			name, is, _ := strings.Cut(line, ":")
			if name = strings.TrimSpace(name); name == "model name" || name == "Model" {
				model = strings.TrimSpace(is)
			}
		}
	}
	kB, _ := field("/proc/meminfo", "MemTotal") // 0 says that it is not known
	return fmt.Sprintf("%s, %d processors, %d GB, %s/%s", model, runtime.NumCPU(), (kB+1<<19)>>20, runtime.GOOS, runtime.GOARCH)
}
