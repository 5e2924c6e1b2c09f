package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"perch/must"
)

// profilesAt is the environment variable with the folder for profiles of the measured programs.
const profilesAt = "PERCH_PROFILES"

// profiling takes profiles of a program through its address debug.listen: CPU profiles of five seconds, one after
// the other, and a heap profile at the end.
type profiling struct {
	at, folder string // the address debug.listen, and the folder for the profiles
	stop       func() // takes the heap profile, and returns when all profiles are written
}

// newProfiling returns a profiling for a program that is not started yet, or nil if PERCH_PROFILES is not set.
func newProfiling(t testing.TB) *profiling {
	folder := os.Getenv(profilesAt)
	if folder == "" {
		return nil
	}
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return &profiling{at: l.Addr().String(), folder: folder}
}

// begin starts the profiles. It must be called when the program serves.
func (p *profiling) begin(t testing.TB, pid int) {
	ctx, cancel := context.WithCancel(context.Background())
	var taking sync.WaitGroup
	taking.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			if err := p.take(ctx, "profile?seconds=5", fmt.Sprintf("%d-%03d.cpu", pid, n)); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	p.stop = func() {
		if err := p.take(context.Background(), "heap", fmt.Sprintf("%d.heap", pid)); err != nil {
			t.Error(err)
		}
		cancel()
		taking.Wait()
	}
}

// take writes a profile into the folder.
func (p *profiling) take(ctx context.Context, of, name string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.at+"/debug/pprof/"+of, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	if err != nil {
		return fmt.Errorf("the profile %s: %w", of, err)
	}
	return os.WriteFile(filepath.Join(p.folder, name), all, 0o644)
}
