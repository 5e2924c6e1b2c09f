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

// otherLoad returns the average number of other programs that ran or waited for a processor
// during a time.
func otherLoad(ctx context.Context, during time.Duration) (load float64, err error) {
	const every = 100 * time.Millisecond
	samples := int(during / every)
	for range samples {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(every):
		}
		n, err := field("/proc/stat", "procs_running")
		if err != nil {
			return 0, err
		}
		load += max(0, float64(n-1)) / float64(samples)
	}
	return load, nil
}

// field returns a number in a file of lines that begin with their names.
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

// machine describes the machine of the figures.
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
	kB, _ := field("/proc/meminfo", "MemTotal") // 0 if unknown
	return fmt.Sprintf("%s, %d processors, %d GB, %s/%s", model, runtime.NumCPU(), (kB+1<<19)>>20, runtime.GOOS, runtime.GOARCH)
}
