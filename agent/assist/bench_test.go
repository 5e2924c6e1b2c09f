package assist_test

import (
	"slices"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/assist"
)

// BenchmarkLatency is what the brain adds to a Home Assistant that answers at
// once, on this machine: from the question to the first sentence.
func BenchmarkLatency(b *testing.B) {
	h := newFakeHA(b, func(p *peer, m command) bool {
		p.began(m)
		p.delta(m, `{"role":"assistant","content":"It is on. And"}`)
		p.delta(m, `{"content":" warm."}`)
		p.end(m, "action_done", "It is on. And warm.", "c1")
		return true
	})
	measure := func(b *testing.B, brain func() *assist.Brain) {
		var took []time.Duration
		for b.Loop() {
			br := brain()
			began, first := time.Now(), time.Duration(0)
			if err := br.Think(b.Context(), agent.Turn{Text: "x"}, func(r agent.Reply) error {
				if _, ok := r.(agent.Say); ok && first == 0 {
					first = time.Since(began)
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
			took = append(took, first)
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2])/1e6, "ms-median")
		b.ReportMetric(float64(took[len(took)*99/100])/1e6, "ms-p99")
	}
	kept := h.brain(b)
	b.Run("kept", func(b *testing.B) { measure(b, func() *assist.Brain { return kept }) })
	b.Run("anew", func(b *testing.B) {
		var last *assist.Brain
		measure(b, func() *assist.Brain {
			if last != nil {
				last.Close()
			}
			last = h.brain(b)
			return last
		})
	})
}
