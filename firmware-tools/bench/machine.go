package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// otherLoad measures for a duration how many other programs run or wait for a processor, and
// returns the average.
func otherLoad(ctx context.Context, d time.Duration) (load float64, err error) {
	const interval = 100 * time.Millisecond
	samples := int(d / interval)
	for range samples {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(interval):
		}
		n, err := field("/proc/stat", "procs_running")
		if err != nil {
			return 0, err
		}
		load += max(0, float64(n-1)) / float64(samples)
	}
	return load, nil
}

// field returns the number that follows the given name, or the name and a colon, at the beginning of a
// line in a file.
func field(path, name string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && strings.TrimSuffix(words[0], ":") == name {
			return strconv.Atoi(words[1])
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}

// machine describes this machine: its processor, memory and operating system.
func machine() string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			if name = strings.TrimSpace(name); name == "model name" || name == "Model" {
				model = strings.TrimSpace(value)
			}
		}
	}
	kB, _ := field("/proc/meminfo", "MemTotal") // 0 if unknown; rounded to GB below
	return fmt.Sprintf("%s, %d processors, %d GB, %s/%s", model, runtime.NumCPU(), (kB+1<<19)>>20, runtime.GOOS, runtime.GOARCH)
}
