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

// Metrics counts the events of the bus, and shows them to Prometheus with
// the values of the status. Every label has a closed list of values, made
// before the first event is read: no text of a robot, a model or an agent
// can make a new series or be read in one.
type Metrics struct {
	api     *API
	handler http.Handler

	stages     map[string]prometheus.Observer
	turns      map[string]prometheus.Counter // by end
	utterances map[string]prometheus.Counter // by result
	tools      map[string]prometheus.Counter // by status
	sessions   prometheus.Counter
	faults     *prometheus.CounterVec
	sensed     prometheus.Counter
	missed     prometheus.Counter

	// Used by the goroutine of Run alone.
	parts map[string]bool   // whose faults are counted by name
	ended map[toolCall]bool // of turns that have not ended
}

// toolCall is one call of a tool within a session.
type toolCall struct{ session, id string }

// Bounds of what is counted by name.
const (
	mostParts = 64
	mostEnded = 1000
	other     = "other" // a label for the rest
)

// stageBuckets are in seconds. Local engines answer in the first few, and people
// wait no longer than the last.
func stageBuckets() []float64 {
	return []float64{.02, .05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 8, 15, 30}
}

// NewMetrics returns the metrics of an appliance with these options. Run counts events.
func NewMetrics(o Options) *Metrics {
	registry := prometheus.NewRegistry()
	m := &Metrics{api: New(o), parts: map[string]bool{}, ended: map[toolCall]bool{}}
	m.count(promauto.With(registry))
	m.registerGauges(registry)
	// A part that cannot be read hides no other. Its error, which holds a stack, is
	// counted and not shown.
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Registry: registry, DisableCompression: true,
	})
	return m
}

// count registers the counters of events.
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
	o := m.api.o
	gauge("perch_robots_known", "Robots that have been here.", func() float64 { return float64(len(o.Robots.List())) })
	talking := func(s agent.State) bool { return s.Talking }
	gauge("perch_robots_connected", "Robots with an open channel.", func() float64 { return float64(m.api.count(talking)) })
	gauge("perch_notifications_waiting", "Notifications that nobody has been told.",
		func() float64 { return float64(m.api.waiting(time.Now())) })
	gauge("perch_start_time_seconds", "When the appliance started, in Unix time.",
		func() float64 { return float64(o.started(time.Now()).Unix()) })
	for _, g := range o.Gauges {
		gauge(g.Name, g.Help, g.Read)
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "perch_build_info", Help: "Always 1; which program this is."}, []string{"version"})
	build.WithLabelValues(strings.ToValidUTF8(o.Version, "?")).Set(1)
	registry.MustRegister(build, scraped(o.partsUp), scraped(o.counters),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// Run counts events until ctx ends or the bus is closed.
func (m *Metrics) Run(ctx context.Context, r *event.Reader) {
	for name := range up(m.api.o.Parts()) {
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

// tool counts a call once, at its end, after which an agent may report more of it.
func (m *Metrics) tool(c toolCall, status string) {
	counter, over := m.tools[status]
	if !over || m.ended[c] {
		return
	}
	if len(m.ended) >= mostEnded {
		clear(m.ended) // turns do not call so many; a call may then be counted twice
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

// scraped collects metrics at each scrape. They are not known in advance.
type scraped func(chan<- prometheus.Metric)

// Describe implements prometheus.Collector.
func (s scraped) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s scraped) Collect(out chan<- prometheus.Metric) { s(out) }

// counters collects the counters of other parts, which may come and go.
func (o Options) counters(out chan<- prometheus.Metric) {
	for _, c := range o.Counters() {
		labels := prometheus.Labels{}
		for name, value := range c.Labels {
			labels[name] = plain.Clip(value, limit.Word) // owners may call things by long names
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(c.Name, c.Help, nil, labels), prometheus.CounterValue, float64(c.Count()))
	}
}

// partsUp collects the condition of the parts.
func (o Options) partsUp(out chan<- prometheus.Metric) {
	desc := prometheus.NewDesc("perch_part_up", "Whether a part does its work.", []string{"part"}, nil)
	for name, ok := range up(o.Parts()) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, Truth(ok), name)
	}
}

// up returns the condition of parts by name. Parts with the same name, such as two
// servers of one kind, are up when all are: Prometheus allows a name once in a scrape.
func up(parts []Part) map[string]bool {
	named := map[string]bool{}
	for _, p := range parts[:min(len(parts), mostParts)] {
		name := plain.Clip(p.Name, limit.Word)
		before, seen := named[name]
		named[name] = p.OK && (before || !seen)
	}
	return named
}
