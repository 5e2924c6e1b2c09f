package appliance_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"perch/agent"
	"perch/must"
	"perch/store"
)

// BenchmarkRemember measures how many facts per second can be remembered. Remember returns after the fact is on disk.
// The memory is new or full, and has one caller or several.
func BenchmarkRemember(b *testing.B) {
	noon := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	for _, full := range []int{0, 2000, 10_000} {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("full=%d/callers=%d", full, callers), func(b *testing.B) {
				db := must.Value(store.Open(filepath.Join(b.TempDir(), "perch.db"), store.Options{}))(b)
				defer func() { _ = db.Close() }()
				table := store.NewTable[agent.Entry](db, "memory")
				for n := range full {
					id := fmt.Sprint("id", n)
					body := fmt.Sprintf("Fact number %d is that a neighbour has a cat", n)
					table.PutSoon(id, agent.Entry{ID: id, Type: agent.MemoryUser, Body: body, Created: noon})
				}
				must.Succeed(b, db.Flush())
				m := agent.NewMemory(table)
				m.Bound(max(full, 2000))
				m.Search("x", noon)
				var last atomic.Int64
				b.SetParallelism(max(callers/runtime.GOMAXPROCS(0), 1))
				b.ResetTimer()
				remember := func() {
					n := last.Add(1)
					e := agent.Entry{Key: fmt.Sprint("place ", n), Body: fmt.Sprint("Your keys are in place ", n)}
					if _, err := m.Remember(e, noon.Add(time.Duration(n)*time.Minute)); err != nil {
						b.Error(err)
					}
				}
				if callers == 1 {
					for b.Loop() {
						remember()
					}
				} else {
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							remember()
						}
					})
				}
				b.ReportMetric(float64(last.Load())/b.Elapsed().Seconds(), "facts/s")
			})
		}
	}
}
