package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/firmware-tools/simrobot"
)

func mb(bytes int) float64 { return float64(bytes) / (1 << 20) }

// at formats a time as the duration since the start of the soak.
func (s *soak) at(when time.Time) string {
	return when.Sub(s.began).Round(100 * time.Millisecond).String()
}

func (s *soak) say(format string, a ...any) {
	if s.quietly {
		return
	}
	fmt.Printf("%8s  %s\n", s.at(time.Now()), fmt.Sprintf(format, a...))
}

// fail records a failure. The run continues, so that it can find more.
func (s *soak) fail(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	s.mu.Lock()
	s.failures = append(s.failures, text)
	n := len(s.failures)
	s.mu.Unlock()
	if n <= 100 {
		s.say("FAILED: %s", text)
	}
}

func (s *soak) failed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failures)
}

func (s *soak) count(change func(*figures)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.figures)
}

// table prints the figures.
func (s *soak) table() {
	f := &s.figures
	var b strings.Builder
	row := func(name, format string, a ...any) {
		fmt.Fprintf(&b, "  %-22s %s\n", name, fmt.Sprintf(format, a...))
	}
	ms := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
	row("seed", "%d", s.seed)
	row("talks untouched", "%d of %d turns; %d turns heard word by word", f.talks, f.turns, f.understood)
	row("talks touched", "%d, by a robot switched off or a power cut", f.touched)
	row("hello", "p50 %s, p99 %s", ms(simrobot.Quantile(f.hellos, .5)), ms(simrobot.Quantile(f.hellos, .99)))
	row("speech to sound", "p50 %s, p99 %s", ms(f.answers.quantile(.5)), ms(f.answers.quantile(.99)))
	row("gaps between packets", "p50 %s, p99 %s, longest %s of %d", ms(f.gaps.quantile(.5)), ms(f.gaps.quantile(.99)), ms(f.gaps.quantile(1)),
		f.gaps.n)
	row("came too early", "%d packets, at the beginning of a speech", f.early)
	row("speaker ran dry", "%d times while brain or synthesizer was ill, after \"One moment.\", or the machine stood still or was others'", f.excused)
	late, longest := s.stalls.late()
	row("machine stood still", "%d times, longest %s; others kept it busy for %s; %d talks were in such times", late, ms(longest),
		s.stalls.busy().Round(time.Second), f.late)
	names := []string{}
	for name := range f.faults {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		row("fault", "%3d  %s", f.faults[name], name)
	}
	for _, kind := range []string{"remember", "forget", "notify", "timer", "adopt", "forget robot"} {
		row("writes", "%4d acknowledged, %d refused  %s", s.owner.acked[kind], s.owner.refused[kind], kind)
	}
	row("writes looked for", "%d", s.owner.checked)
	row("sent", "%d frames to skins, %d events to the owner (missed %d times), %d messages over MQTT", f.frames, f.events, f.missed, f.messages)
	st := s.foreign
	row("strangers came", "%d invented, %d times by the MAC of the household's robots; %d known at a time", st.invented, st.pretended, st.known)
	row("strangers talked", "%d times of %d with 200 tools, %d channels of noise", st.answered, st.talks, st.channels)
	row("strangers refused", "%d times; reported in %d events and %d lines of the log", st.refused, len(st.seen), st.lines)
	row("strangers changed", "%d things, in %d looks", st.changed, st.looks)
	row("memory", "%.1f MB, then %.1f MB anonymous; %.1f MB, then %.1f MB Go's heap", mb(f.base.anonymous), mb(f.end.anonymous),
		mb(f.base.heap), mb(f.end.heap))
	row("descriptors", "%d, then %d", f.base.fds, f.end.fds)
	row("goroutines", "%d, then %d", f.base.goroutines, f.end.goroutines)
	row("processor", "%s of the appliance between the two", (f.end.cpu - f.base.cpu).Round(time.Second))
	feeds, silent := s.appliance.manager.longest()
	row("watchdog fed", "%d times, longest silence %s", feeds, silent.Round(time.Second))
	row("starts", "%d, slowest %s", len(s.appliance.starts), ms(slices.Max(s.appliance.starts)))
	row("failures", "%d", len(s.failures))
	fmt.Printf("\nThe soak, %s:\n%s", time.Since(s.began).Round(time.Second), &b)
}
