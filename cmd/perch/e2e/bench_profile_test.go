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

// profilesAt, in the environment, is a folder for profiles of the programs that are measured.
const profilesAt = "PERCH_PROFILES"

// profiling takes profiles of a program by its debug.listen: of its processor time some
// seconds each, one after the other, and of its heap before it ends.
type profiling struct {
	at, folder string
	stop       func() // returns when all are written
}

// newProfiling is for a program that is not started yet, or nil where nobody wants profiles.
func newProfiling(t testing.TB) *profiling {
	folder := os.Getenv(profilesAt)
	if folder == "" {
		return nil
	}
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return &profiling{at: l.Addr().String(), folder: folder}
}

// begin is called when the program serves.
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
