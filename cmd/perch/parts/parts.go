// Package parts runs the parts of an appliance, and stops them in order.
package parts

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"perch/health"
)

// Part is one of the parts that an appliance consists of. All fields are optional.
type Part struct {
	// Run does the part's work until ctx ends. An error ends the appliance, unless Fails is set:
	// then the error is logged with Fails as the message.
	Run   func(ctx context.Context) error
	Fails string
	// First makes the Runner stop this part before all others.
	First bool
	// End disconnects the clients that the part serves. It is called before the context of Run
	// ends, except for parts with First.
	End func()
	// Conditions returns the part's conditions for /ready and the doctor.
	Conditions func() []health.Part
}

// Infallible makes a Part.Run from a function that cannot fail.
func Infallible(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); return nil }
}

// SingleCondition makes a Part.Conditions from a function that returns a single condition.
func SingleCondition(condition func() health.Part) func() []health.Part {
	return func() []health.Part { return []health.Part{condition()} }
}

// When returns p if enabled is true, and an empty Part otherwise.
func When(enabled bool, p Part) Part {
	if enabled {
		return p
	}
	return Part{}
}

// Conditions returns the conditions of all parts.
func Conditions(parts []Part) (conditions []health.Part) {
	for _, p := range parts {
		if p.Conditions != nil {
			conditions = append(conditions, p.Conditions()...)
		}
	}
	return conditions
}

// Runner runs the parts of an appliance.
type Runner struct {
	Parts    []Part
	Ended    <-chan error // Run ends and returns the error when it receives one here
	Started  func()       // called after Run has started a goroutine for each part
	Stopping func(error)  // called with the result of Run before the first part is stopped
	Log      *slog.Logger
}

// Run runs the parts until ctx ends, Ended delivers an error, or a part without Fails returns an
// error. Then it stops the parts: it ends the parts with First and waits for them, calls every End in
// reverse order, and at last ends all other parts at the same time and waits for them.
// It returns the error that ended it, or nil if ctx has ended.
func (r Runner) Run(ctx context.Context) error {
	lateCtx, stopLate := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLate()
	firstCtx, stopFirst := context.WithCancel(lateCtx)
	defer stopFirst()
	failed := make(chan error, len(r.Parts))
	var first, late sync.WaitGroup
	for _, p := range r.Parts {
		switch {
		case p.Run == nil:
		case p.First:
			first.Go(func() { r.runPart(firstCtx, p, failed) })
		default:
			late.Go(func() { r.runPart(lateCtx, p, failed) })
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
	stopLate()
	late.Wait()
	return err
}

// runPart runs a part until it ends. An error is logged, or sent to failed.
func (r Runner) runPart(ctx context.Context, p Part, failed chan<- error) {
	err := p.Run(ctx)
	switch {
	case err == nil:
	case p.Fails != "":
		r.Log.Error(p.Fails, "err", err)
	default:
		failed <- err
	}
}
