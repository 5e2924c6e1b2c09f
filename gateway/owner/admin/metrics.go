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

// Metrics counts the events of the bus, and serves the counts and the status of the appliance to Prometheus.
// The values of a label never come from a text of a robot, a model or an agent, so such a text can neither create a
// series nor be read in one.
type Metrics struct {
	api     *API
	handler http.Handler

	stages     map[string]prometheus.Observer // key: stage of a turn
	turns      map[string]prometheus.Counter  // key: how the turn ended
	utterances map[string]prometheus.Counter  // key: "heard" or "misheard"
	tools      map[string]prometheus.Counter  // key: status at the end of the call
	sessions   prometheus.Counter
	faults     *prometheus.CounterVec
	sensed     prometheus.Counter
	missed     prometheus.Counter

	// Only the goroutine of Run uses the following fields.

	parts map[string]bool   // the parts whose faults are counted by name
	ended map[toolCall]bool // the ended tool calls of turns that have not ended
}

// toolCall is one call of a tool within a session.
type toolCall struct{ session, id string }

// Limits of the metrics.
const (
	maxParts = 64      // number of parts whose names are label values
	maxEnded = 1000    // tool calls in Metrics.ended
	other    = "other" // label value for all other parts and ends of turns
)

// stageBuckets returns the bounds of the histogram buckets, in seconds. The low bounds tell fast local engines apart.
// The highest is 30 s, because people do not wait longer.
func stageBuckets() []float64 {
	return []float64{.02, .05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 8, 15, 30}
}

// NewMetrics returns the metrics of an appliance. Run has to be called to count events.
func NewMetrics(o Options) *Metrics {
	registry := prometheus.NewRegistry()
	m := &Metrics{api: New(o), parts: map[string]bool{}, ended: map[toolCall]bool{}}
	m.registerCounters(promauto.With(registry))
	m.registerGauges(registry)
	// If a metric cannot be read, the others are still served. The error is counted but not served, because it
	// contains a stack trace.
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Registry: registry, DisableCompression: true,
	})
	return m
}

// registerCounters registers the counters of events.
func (m *Metrics) registerCounters(registered promauto.Factory) {
	counter := func(name, help string) prometheus.Counter {
		return registered.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help, label string, values ...string) (*prometheus.CounterVec, map[string]prometheus.Counter) {
		v := registered.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		byValue := map[string]prometheus.Counter{}
		for _, value := range values {
			byValue[value] = v.WithLabelValues(value) // creates the series with 0, so that the first event is an increase
		}
		return v, byValue
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

// registerGauges registers the metrics that are read at each scrape.
func (m *Metrics) registerGauges(registry *prometheus.Registry) {
	gauge := func(name, help string, read func() float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
	}
	o := m.api.o
	gauge("perch_robots_known", "Robots that have been here.", func() float64 { return float64(len(o.Robots.List())) })
	talking := func(s agent.State) bool { return s.Talking }
	gauge("perch_robots_connected", "Robots with an open channel.", func() float64 { return float64(m.api.countRobots(talking)) })
	gauge("perch_notifications_waiting", "Notifications that nobody has been told.",
		func() float64 { return float64(m.api.countUndelivered(time.Now())) })
	gauge("perch_start_time_seconds", "When the appliance started, in Unix time.",
		func() float64 { return float64(o.startTime(time.Now()).Unix()) })
	for _, g := range o.Gauges {
		gauge(g.Name, g.Help, g.Read)
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "perch_build_info", Help: "Always 1; which program this is."}, []string{"version"})
	build.WithLabelValues(strings.ToValidUTF8(o.Version, "?")).Set(1)
	registry.MustRegister(build, scraped(o.collectParts), scraped(o.collectCounters),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// Run counts events until ctx ends or the bus is closed.
func (m *Metrics) Run(ctx context.Context, r *event.Reader) {
	for name := range partsUp(m.api.o.Parts()) {
		m.parts[name] = true
		m.faults.WithLabelValues(name)
	}
	r.Each(ctx, m.handleEvent)
}

func (m *Metrics) handleEvent(e event.Envelope) {
	switch ev := e.Event.(type) {
	case event.RobotOnline:
		m.sessions.Inc()
	case event.Heard:
		m.utterances["heard"].Inc()
	case event.Misheard:
		m.utterances["misheard"].Inc()
	case event.ToolStatus:
		m.countToolCall(toolCall{e.Session, ev.ID}, ev.Status)
	case event.TurnEnded:
		m.countTurn(e.Session, ev)
	case event.Perceived:
		m.sensed.Inc()
	case event.Fault:
		m.countFault(ev.Part)
	case event.Missed:
		m.missed.Add(float64(ev.N))
	}
}

// countTurn counts the end of a turn and the durations of its stages.
func (m *Metrics) countTurn(session string, t event.TurnEnded) {
	maps.DeleteFunc(m.ended, func(c toolCall, _ bool) bool { return c.session == session })
	end, known := m.turns[t.End]
	if !known {
		end = m.turns[other]
	}
	end.Inc()
	for name, ms := range t.Stages {
		if stage, known := m.stages[name]; known {
			stage.Observe(float64(max(ms, 0)) / 1000) // Prometheus would take a decreasing sum for a restart
		}
	}
}

// countToolCall counts a tool call when it ends. An agent may report the same call again later.
func (m *Metrics) countToolCall(c toolCall, status string) {
	counter, ended := m.tools[status]
	if !ended || m.ended[c] {
		return
	}
	if len(m.ended) >= maxEnded {
		clear(m.ended) // normal turns do not have so many calls; a call may now be counted twice
	}
	m.ended[c] = true
	counter.Inc()
}

func (m *Metrics) countFault(part string) {
	if part = plain.Clip(part, limit.Word); part != "turn" && !m.parts[part] {
		part = other
	}
	m.faults.WithLabelValues(part).Inc()
}

// scraped is a prometheus.Collector of metrics that are not known in advance.
type scraped func(chan<- prometheus.Metric)

// Describe implements prometheus.Collector.
func (s scraped) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s scraped) Collect(out chan<- prometheus.Metric) { s(out) }

// collectCounters collects the counters of other packages, whose number may change.
func (o Options) collectCounters(out chan<- prometheus.Metric) {
	for _, c := range o.Counters() {
		labels := prometheus.Labels{}
		for name, value := range c.Labels {
			labels[name] = plain.Clip(value, limit.Word) // the owner may have chosen a long name
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(c.Name, c.Help, nil, labels), prometheus.CounterValue, float64(c.Count()))
	}
}

// collectParts collects the condition of the parts.
func (o Options) collectParts(out chan<- prometheus.Metric) {
	desc := prometheus.NewDesc("perch_part_up", "Whether a part does its work.", []string{"part"}, nil)
	for name, ok := range partsUp(o.Parts()) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, BoolValue(ok), name)
	}
}

// partsUp returns, by name, whether each of the first maxParts parts works. Parts that have the same name, such as
// two servers of one kind, have a single entry, which is true if all of them work.
func partsUp(parts []Part) map[string]bool {
	works := map[string]bool{}
	for _, p := range parts[:min(len(parts), maxParts)] {
		name := plain.Clip(p.Name, limit.Word)
		others, seen := works[name]
		works[name] = p.OK && (others || !seen)
	}
	return works
}
