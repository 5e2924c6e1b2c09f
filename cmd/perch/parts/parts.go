// Package parts runs the parts of an appliance, and ends them in order.
package parts

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"perch/health"
)

// Part is one of the parts that an appliance consists of. All fields may be left out.
type Part struct {
	// Run does the part's work until ctx ends. An error is logged with the words of Fails; if
	// Fails is empty, the error ends the appliance.
	Run   func(ctx context.Context) error
	Fails string
	// First is whether Run has to end before any other part does.
	First bool
	// End disconnects the clients that the part serves.
	End func()
	// Conditions are shown by /ready and the doctor.
	Conditions func() []health.Part
}

// Until returns a Part's Run of a function that cannot fail.
func Until(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); return nil }
}

// One returns a Part's Conditions of one.
func One(condition func() health.Part) func() []health.Part {
	return func() []health.Part { return []health.Part{condition()} }
}

// When returns the part of an appliance that has it, and else an empty one.
func When(has bool, p Part) Part {
	if has {
		return p
	}
	return Part{}
}

// Conditions returns those of all parts.
func Conditions(all []Part) (conditions []health.Part) {
	for _, p := range all {
		if p.Conditions != nil {
			conditions = append(conditions, p.Conditions()...)
		}
	}
	return conditions
}

// Runner runs parts.
type Runner struct {
	Parts    []Part
	Ended    <-chan error // ends the run with an error
	Started  func()       // is called once all parts run
	Stopping func(error)  // is called before the first part ends, with the error that Run will return
	Log      *slog.Logger
}

// Run runs the parts until ctx ends, and then stops them: first the parts with First, then the
// others in reverse order. It returns the error of Ended, or of a part that ends the appliance.
func (r Runner) Run(ctx context.Context) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	failed := make(chan error, len(r.Parts))
	var others, first sync.WaitGroup
	early, stopFirst := context.WithCancel(inner)
	defer stopFirst()
	for _, p := range r.Parts {
		switch {
		case p.Run == nil:
		case p.First:
			first.Go(func() { r.work(early, p, failed) })
		default:
			others.Go(func() { r.work(inner, p, failed) })
		}
	}
	r.Started()
	var err error
	select {
	case <-ctx.Done():
	case err = <-r.Ended:
	case err = <-failed:
	}
	r.Stopping(err)
	stopFirst()
	first.Wait()
	for _, p := range slices.Backward(r.Parts) {
		if p.End != nil {
			p.End()
		}
	}
	stop()
	others.Wait()
	return err
}

// work runs a part to its end.
func (r Runner) work(ctx context.Context, p Part, failed chan<- error) {
	err := p.Run(ctx)
	switch {
	case err == nil:
	case p.Fails != "":
		r.Log.Error(p.Fails, "err", err)
	default:
		failed <- err
	}
}
