package agent_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"perch/agent"
	"perch/must"
	"perch/store/storetest"
)

// TestViewersPushNothingOut: what a program reports fills a tenth of the memory, gives way
// to what is the owner's, and takes the place of none of it.
func TestViewersPushNothingOut(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	m.Bound(50)
	now := time.Now()
	keep := func(i int, source string) error {
		now = now.Add(time.Second)
		_, err := m.Remember(agent.Entry{Name: fmt.Sprint(source, i), Body: "x", Type: agent.MemoryFeedback, Source: source}, now)
		return err
	}
	count := func() (owners, viewers int) {
		for _, e := range m.Search("", now) {
			if e.Source == agent.SourceViewer {
				viewers++
			} else {
				owners++
			}
		}
		return owners, viewers
	}
	for i := range 40 {
		must.Succeed(t, keep(i, "tool"))
	}
	now = now.Add(30 * 24 * time.Hour) // when all of it ranks low
	for i := range 500 {
		must.Succeed(t, keep(i, agent.SourceViewer))
	}
	if owners, viewers := count(); owners != 40 || viewers != 5 {
		t.Errorf("%d of the owner's and %d of viewers", owners, viewers)
	}
	for i := range 10 {
		must.Succeed(t, keep(100+i, "tool"))
	}
	if owners, viewers := count(); owners != 50 || viewers != 0 {
		t.Errorf("full: %d of the owner's and %d of viewers", owners, viewers)
	}
	if err := keep(0, agent.SourceViewer); !errors.Is(err, agent.ErrFull) {
		t.Errorf("a viewer's in a full memory: %v", err)
	}
}
