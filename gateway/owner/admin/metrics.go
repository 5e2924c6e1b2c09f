package admin

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"perch/agent"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// Metrics counts what the bus carries, and gives it out for Prometheus,
// together with what the status shows. Every label has a closed list of
// values, made before the first event is read: nothing that a robot, a model
// or an agent says can make a new series, or be read in one.
type Metrics struct {
	door    *API
	handler http.Handler

	stages     map[string]prometheus.Observer
	turns      map[string]prometheus.Counter // by end
	utterances map[string]prometheus.Counter // by result
	tools      map[string]prometheus.Counter // by status
	sessions   prometheus.Counter
	faults     *prometheus.CounterVec
	sensed     prometheus.Counter
	missed     prometheus.Counter

	// Of the goroutine of Run.
	parts map[string]bool   // that faults are counted for by name
	ended map[toolCall]bool // of turns that go on
}

// toolCall is one call of a tool within a session.
type toolCall struct{ session, id string }

// Bounds of what is counted by name.
const (
	mostParts = 64
	mostEnded = 1000
	other     = "other" // what has no name of its own here
)

// stageBuckets are in seconds. Local engines answer in the first few, and people
// wait no longer than the last.
func stageBuckets() []float64 {
	return []float64{.02, .05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 8, 15, 30}
}

// NewMetrics returns the metrics of what an API with the same options shows,
// in a registry of their own. They count what Run reads.
func NewMetrics(o Options) *Metrics {
	registry := prometheus.NewRegistry()
	m := &Metrics{door: New(o), parts: map[string]bool{}, ended: map[toolCall]bool{}}
	m.count(promauto.With(registry))
	m.registerGauges(registry)
	// A part that cannot be looked at hides no other. It is counted, and not
	// shown: the error holds a stack.
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Registry: registry, DisableCompression: true,
	})
	return m
}

// count registers what the bus is counted into.
func (m *Metrics) count(registered promauto.Factory) {
	counter := func(name, help string) prometheus.Counter {
		return registered.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help, label string, values ...string) (*prometheus.CounterVec, map[string]prometheus.Counter) {
		v := registered.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		each := map[string]prometheus.Counter{}
		for _, value := range values {
			each[value] = v.WithLabelValues(value) // from 0, so that the first is a rise
		}
		return v, each
	}
	_, m.turns = counters("perch_turns_total", "Turns that ended, by how.", "end",
		event.EndDone, event.EndCancelled, event.EndFailed, event.EndHangUp, event.EndSleep, other)
	_, m.utterances = counters("perch_utterances_total", "Utterances, by whether they were understood.", "result", "heard", "misheard")
	_, m.tools = counters("perch_tool_calls_total", "Calls to tools that ended, by how.", "status", event.ToolDone, event.ToolFailed)
	m.faults, _ = counters("perch_faults_total", "Times a part did not do its work.", "part", "turn", other)
	m.sessions = counter("perch_sessions_total", "Channels that robots have opened.")
	m.sensed = counter("perch_perceived_total", "Events that robots have sensed, or somebody for them.")
	m.missed = counter("perch_events_missed_total", "Events that were lost to these metrics, because they came too fast.")

	stages := registered.NewHistogramVec(prometheus.HistogramOpts{
		Name: "perch_turn_stage_seconds",
		Help: "What the stages of turns took; first_packet is from the end of speech to the first sound.", Buckets: stageBuckets(),
	}, []string{"stage"})
	m.stages = map[string]prometheus.Observer{}
	for _, name := range event.Stages() {
		m.stages[name] = stages.WithLabelValues(name)
	}
}

// registerGauges registers the gauges, which are read at each scrape.
func (m *Metrics) registerGauges(registry *prometheus.Registry) {
	gauge := func(name, help string, read func() float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
	}
	o := m.door.o
	gauge("perch_robots_known", "Robots that have been here.", func() float64 { return float64(len(o.Robots.List())) })
	talking := func(s agent.State) bool { return s.Talking }
	gauge("perch_robots_connected", "Robots with an open channel.", func() float64 { return float64(m.door.count(talking)) })
	gauge("perch_notifications_waiting", "Notifications that nobody has been told.",
		func() float64 { return float64(m.door.waiting(time.Now())) })
	gauge("perch_start_time_seconds", "When the appliance started, in Unix time.",
		func() float64 { return float64(o.started(time.Now()).Unix()) })
	for _, g := range o.Gauges {
		gauge(g.Name, g.Help, g.Read)
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "perch_build_info", Help: "Always 1; which program this is."}, []string{"version"})
	build.WithLabelValues(strings.ToValidUTF8(o.Version, "?")).Set(1)
	part := prometheus.NewDesc("perch_part_up", "Whether a part does its work.", []string{"part"}, nil)
	registry.MustRegister(build, partsUp{part, o.Parts}, counted(o.Counters),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// labels are fit to be shown, whatever their owner has named things.
func labels(given map[string]string) prometheus.Labels {
	fit := prometheus.Labels{}
	for name, value := range given {
		fit[name] = plain.Clip(value, limit.Word)
	}
	return fit
}

// Run counts what the bus carries until ctx ends or the bus is closed.
func (m *Metrics) Run(ctx context.Context, r *event.Reader) {
	for name := range up(m.door.o.Parts()) {
		m.parts[name] = true
		m.faults.WithLabelValues(name)
	}
	r.Each(ctx, m.handleEvent)
}

func (m *Metrics) handleEvent(e event.Envelope) {
	switch what := e.Event.(type) {
	case event.RobotOnline:
		m.sessions.Inc()
	case event.Heard:
		m.utterances["heard"].Inc()
	case event.Misheard:
		m.utterances["misheard"].Inc()
	case event.ToolStatus:
		m.tool(toolCall{e.Session, what.ID}, what.Status)
	case event.TurnEnded:
		m.turn(e.Session, what)
	case event.Perceived:
		m.sensed.Inc()
	case event.Fault:
		m.fault(what.Part)
	case event.Missed:
		m.missed.Add(float64(what.N))
	}
}

func (m *Metrics) turn(session string, t event.TurnEnded) {
	maps.DeleteFunc(m.ended, func(c toolCall, _ bool) bool { return c.session == session })
	end, known := m.turns[t.End]
	if !known {
		end = m.turns[other]
	}
	end.Inc()
	for name, ms := range t.Stages {
		if stage, known := m.stages[name]; known {
			stage.Observe(float64(max(ms, 0)) / 1000) // a sum that falls would pass for a restart
		}
	}
}

// tool counts a call once, at its end: an agent may report more of one that is
// over.
func (m *Metrics) tool(c toolCall, status string) {
	counter, over := m.tools[status]
	if !over || m.ended[c] {
		return
	}
	if len(m.ended) >= mostEnded {
		clear(m.ended) // no turn calls so many; rather count one twice than grow
	}
	m.ended[c] = true
	counter.Inc()
}

func (m *Metrics) fault(part string) {
	if part = plain.Clip(part, limit.Word); part != "turn" && !m.parts[part] {
		part = other
	}
	m.faults.WithLabelValues(part).Inc()
}

// counted are the counters of other parts, which may come and go.
type counted func() []Counter

// Describe implements prometheus.Collector. The metrics are not known in advance.
func (c counted) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c counted) Collect(out chan<- prometheus.Metric) {
	for _, one := range c() {
		desc := prometheus.NewDesc(one.Name, one.Help, nil, labels(one.Labels))
		out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(one.Count()))
	}
}

// partsUp collects the condition of the parts.
type partsUp struct {
	desc  *prometheus.Desc
	parts func() []Part
}

// Describe implements prometheus.Collector.
func (p partsUp) Describe(out chan<- *prometheus.Desc) { out <- p.desc }

// Collect implements prometheus.Collector.
func (p partsUp) Collect(out chan<- prometheus.Metric) {
	for name, ok := range up(p.parts()) {
		value := 0.0
		if ok {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, value, name)
	}
}

// up is the condition of parts by name. Those that share a name, such as two
// servers of one kind, are up when all are: a name that came twice would be
// an error of the scrape.
func up(parts []Part) map[string]bool {
	named := map[string]bool{}
	for _, p := range parts[:min(len(parts), mostParts)] {
		name := plain.Clip(p.Name, limit.Word)
		before, seen := named[name]
		named[name] = p.OK && (before || !seen)
	}
	return named
}
