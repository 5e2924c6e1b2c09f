package admin_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/must"
)

// count closes the bus and makes the metrics count all published events.
func (h *appliance) count(t testing.TB) {
	t.Helper()
	h.bus.Close()
	h.metrics.Run(t.Context(), h.bus.ReadFrom(1))
}

// scrape requests the metrics as Prometheus does, and returns their text and the value of each series. The series of a
// histogram have the bounds of its buckets, _count and _sum appended to their names.
func (h *appliance) scrape(t testing.TB) (series map[string]float64, text string) {
	t.Helper()
	server := httptest.NewServer(h.engine)
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/metrics")
	must.Succeed(t, err)
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); err != nil || answer.StatusCode != 200 || !strings.HasPrefix(kind,
		"text/plain; version=0.0.4; charset=utf-8") {
		t.Fatalf("metrics: %s, %s (%v)", answer.Status, kind, err)
	}
	if answer.Header.Get("Cache-Control") != "no-store" || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", answer.Header)
	}
	return parse(t, body), string(body)
}

func parse(t testing.TB, body []byte) map[string]float64 {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	series := map[string]float64{}
	for family, f := range families {
		for _, m := range f.GetMetric() {
			name := family
			for _, l := range m.GetLabel() {
				name += fmt.Sprintf("{%s=%q}", l.GetName(), l.GetValue())
			}
			if histogram := m.GetHistogram(); histogram != nil {
				for _, b := range histogram.GetBucket() {
					series[fmt.Sprint(name, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
				series[name+"_count"], series[name+"_sum"] = float64(histogram.GetSampleCount()), histogram.GetSampleSum()
				continue
			}
			series[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue() + m.GetSummary().GetSampleSum()
		}
	}
	return series
}

// check checks the values of some series.
func check(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if v, there := got[name]; !there || v != value {
			t.Errorf("%s is %v (there %v), want %v", name, v, there, value)
		}
	}
}

func TestMetricsCountEvents(t *testing.T) {
	h := newAppliance(t)
	for _, e := range []event.Event{
		event.RobotOnline{Framing: 1}, event.Heard{Text: "one"}, event.Heard{Text: "two"}, event.Misheard{},
		event.ToolStatus{ID: "1", Status: event.ToolRunning}, event.ToolStatus{ID: "1", Status: event.ToolDone},
		event.ToolStatus{ID: "1", Status: event.ToolDone, Detail: "told again, under another title"},
		event.ToolStatus{ID: "2", Status: event.ToolRunning}, event.ToolStatus{ID: "2", Status: event.ToolFailed},
		event.TurnEnded{End: event.EndDone, Stages: map[string]int64{"recognize": 20, "first_token": 21, "first_audio": 1500, "first_packet": 30000}},
		event.ToolStatus{ID: "1", Status: event.ToolDone}, // a call of another turn
		event.TurnEnded{End: event.EndDone, Stages: map[string]int64{"recognize": 60, "first_packet": 30001}},
		event.TurnEnded{End: event.EndCancelled}, event.TurnEnded{End: event.EndFailed, Reason: "no brain answers"},
		event.TurnEnded{End: event.EndHangUp}, event.TurnEnded{End: event.EndSleep}, event.TurnEnded{End: "unheard of"},
		event.Fault{Part: "turn", Cause: "no brain answers"}, event.Fault{Part: "mqtt"}, event.Fault{Part: "mqtt"}, event.Fault{Part: "the roof"},
		event.RobotOffline{Why: "hung up"}, event.RobotOnline{Framing: 2}, event.Perceived{Name: "face_detected"},
	} {
		h.publish(t, robotA, "s1", e)
	}
	before, _ := h.scrape(t)
	check(t, before, map[string]float64{ // the series exist from the start, so that the first event increases them
		`perch_turns_total{end="done"}`: 0, `perch_turns_total{end="failed"}`: 0, `perch_utterances_total{result="heard"}`: 0,
		`perch_tool_calls_total{status="failed"}`: 0, `perch_faults_total{part="turn"}`: 0, `perch_sessions_total`: 0,
		`perch_events_missed_total`: 0, `perch_perceived_total`: 0, `perch_elsewhere_total`: 7,
		`perch_turn_stage_seconds{stage="first_audio"}_count`: 0,
	})
	h.count(t)
	got, _ := h.scrape(t)
	check(t, got, map[string]float64{
		`perch_sessions_total`: 2, `perch_utterances_total{result="heard"}`: 2, `perch_utterances_total{result="misheard"}`: 1,
		`perch_tool_calls_total{status="done"}`: 2, `perch_tool_calls_total{status="failed"}`: 1,
		`perch_turns_total{end="done"}`: 2, `perch_turns_total{end="cancelled"}`: 1, `perch_turns_total{end="failed"}`: 1,
		`perch_turns_total{end="hang_up"}`: 1, `perch_turns_total{end="sleep"}`: 1, `perch_turns_total{end="other"}`: 1,
		`perch_faults_total{part="turn"}`: 1, `perch_faults_total{part="mqtt"}`: 2, `perch_faults_total{part="store"}`: 0,
		`perch_faults_total{part="other"}`: 1,
		`perch_events_missed_total`:        0, `perch_perceived_total`: 1,

		`perch_turn_stage_seconds{stage="recognize"}_count`: 2, `perch_turn_stage_seconds{stage="recognize"}_sum`: .08,
		`perch_turn_stage_seconds{stage="recognize"}0.02`: 1, `perch_turn_stage_seconds{stage="recognize"}0.05`: 1,
		`perch_turn_stage_seconds{stage="recognize"}0.1`:    2,
		`perch_turn_stage_seconds{stage="first_token"}0.02`: 0, `perch_turn_stage_seconds{stage="first_token"}0.05`: 1,
		`perch_turn_stage_seconds{stage="first_audio"}1`: 0, `perch_turn_stage_seconds{stage="first_audio"}1.5`: 1,
		`perch_turn_stage_seconds{stage="first_packet"}30`: 1, `perch_turn_stage_seconds{stage="first_packet"}+Inf`: 2,
	})
}

// TestMetricsGauges checks that gauges are read at each scrape.
func TestMetricsGauges(t *testing.T) {
	h := newAppliance(t)
	got, _ := h.scrape(t)
	check(t, got, map[string]float64{
		`perch_robots_known`: 0, `perch_robots_connected`: 0, `perch_notifications_waiting`: 0, `perch_part_up{part="store"}`: 1,
		`perch_part_up{part="mqtt"}`: 1, `perch_build_info{version="1.0"}`: 1, `perch_start_time_seconds`: float64(started.Unix()),
		`promhttp_metric_handler_errors_total{cause="gathering"}`: 0,
	})
	if got["go_goroutines"] < 2 || got["process_resident_memory_bytes"] < 1e6 || got["process_start_time_seconds"] < 1e9 {
		t.Errorf("of the program: %v goroutines, %v bytes, started %v", got["go_goroutines"], got["process_resident_memory_bytes"],
			got["process_start_time_seconds"])
	}
	h.visit(t, robotA, "one")
	h.visit(t, robotB, "two")
	h.publish(t, robotA, "s1", event.RobotOnline{Framing: 1})
	must.Value(h.notices.Accept(notice.Notification{Text: "the laundry is done"}, time.Now()))(t)
	h.parts = []admin.Part{
		{Name: "store", OK: true}, {Name: "mqtt", Note: "connection refused"},
		{Name: "brain openai", OK: true}, {Name: "brain openai"}, {Name: "mouth", OK: true}, {Name: "mouth", OK: true},
	}
	got, _ = h.scrape(t)
	check(t, got, map[string]float64{
		`perch_robots_known`: 2, `perch_robots_connected`: 1, `perch_notifications_waiting`: 1, `perch_part_up{part="store"}`: 1,
		`perch_part_up{part="mqtt"}`: 0, `perch_part_up{part="brain openai"}`: 0, `perch_part_up{part="mouth"}`: 1,
		`promhttp_metric_handler_errors_total{cause="gathering"}`: 0,
	})
	h.publish(t, robotA, "s1", event.RobotOffline{Why: "hung up"})
	got, _ = h.scrape(t)
	check(t, got, map[string]float64{`perch_robots_connected`: 0})
}

// TestMetricsLabelsAreClosed checks that no event of any robot, and no request for an unknown path, adds a series, and
// that no text of an event can be read in the metrics.
func TestMetricsLabelsAreClosed(t *testing.T) {
	h := newAppliance(t)
	h.bus.Publish("", "", event.Misheard{})
	quiet := newAppliance(t)
	quiet.count(t)
	series, _ := quiet.scrape(t)
	want := ours(series)
	for n := range 300 { // few enough that the bus still holds all events
		bad := fmt.Sprintf("canary %d \xff\x00\"}\n a0b1c2d3e4f5 sk-key %s", n, strings.Repeat("x", 10_000*(n%2)))
		for _, e := range []event.Event{
			event.TurnEnded{End: bad, Reason: bad, Stages: map[string]int64{bad: 1, "recognize": -1 << 62, "first_token": 1<<63 - 1, "": 5,
				string(robotA): 7}},
			event.ToolStatus{ID: bad, Name: bad, Status: bad, Detail: bad}, event.ToolStatus{ID: bad, Name: bad, Status: event.ToolDone},
			event.Fault{Part: bad, Cause: bad}, event.Fault{Part: string(robotA)}, event.Heard{Text: bad}, event.RobotOnline{Framing: n},
			event.ThinkingStarted{Brain: bad}, event.Emotion{Name: bad}, event.RobotOffline{Why: bad}, event.RobotSeen{Board: bad, Firmware: bad},
		} {
			h.bus.Publish(device.ID(fmt.Sprintf("%012x", n)), bad, e)
		}
		h.engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, fmt.Sprintf("/invented%d", n), nil))
	}
	h.count(t)
	series, text := h.scrape(t)
	if got := ours(series); got != want {
		t.Errorf("the series are\n%s\nwant\n%s", got, want)
	}
	for _, word := range []string{"canary", "sk-key", string(robotA)} {
		if strings.Contains(text, word) {
			t.Errorf("%q can be read in\n%s", word, text)
		}
	}
	check(t, series, map[string]float64{
		`perch_sessions_total`: 300, `perch_turns_total{end="other"}`: 300, `perch_faults_total{part="other"}`: 600,
		`perch_tool_calls_total{status="done"}`:           300,
		`perch_turn_stage_seconds{stage="recognize"}_sum`: 0, `perch_turn_stage_seconds{stage="recognize"}_count`: 300,
	})
}

// ours returns the names of the series that begin with perch_, one per line.
func ours(m map[string]float64) string {
	all := slices.DeleteFunc(slices.Collect(maps.Keys(m)), func(name string) bool { return !strings.HasPrefix(name, "perch_") })
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// TestMetricsOfOthers checks the counters and gauges of other packages.
func TestMetricsOfOthers(t *testing.T) {
	level := 3.0
	h := newAppliance(t, func(o *admin.Options) {
		counters := []admin.Counter{
			{Name: "perch_engine_failures_total", Help: "Failures.", Labels: map[string]string{"kind": "sphinx"}, Count: func() uint64 { return 2 }},
			{Name: "perch_engine_failures_total", Help: "Failures.", Labels: map[string]string{"kind": strings.Repeat("x", 1000) + "\xff"},
				Count: func() uint64 { return 5 }},
		}
		o.Counters = func() []admin.Counter { return counters }
		o.Gauges = []admin.Gauge{{Name: "perch_store_bytes", Help: "Size.", Read: func() float64 { return level }}}
	})
	for range 2 {
		got, _ := h.scrape(t)
		check(t, got, map[string]float64{
			`perch_engine_failures_total{kind="sphinx"}`: 2, `perch_engine_failures_total{kind="` + strings.Repeat("x", 64) + `"}`: 5,
			`perch_store_bytes`: level,
		})
		level++
	}
}

// TestMetricsOfManyParts checks that the number and the names of parts, which come from the configuration, are bounded.
func TestMetricsOfManyParts(t *testing.T) {
	h := newAppliance(t)
	h.parts = nil
	for n := range 1000 {
		h.parts = append(h.parts, admin.Part{Name: fmt.Sprintf("mcp %d \xff\"\n%s", n, strings.Repeat("é", 1000)), OK: true, Note: "canary"})
	}
	h.count(t)
	series, text := h.scrape(t)
	up, faults := 0, 0
	for name, value := range series {
		if strings.HasPrefix(name, "perch_part_up") {
			up += int(value)
		}
		if strings.HasPrefix(name, "perch_faults_total") {
			faults++
		}
	}
	if up != 64 || faults != 64+2 || len(text) > 64<<10 || strings.Contains(text, "canary") {
		t.Errorf("%d parts and %d faults in %d bytes", up, faults, len(text))
	}
}

// TestMetricsMissed checks that events that the metrics have missed are counted.
func TestMetricsMissed(t *testing.T) {
	h := newAppliance(t)
	for range 5000 {
		h.bus.Publish(robotA, "s1", event.TurnEnded{End: event.EndDone, Stages: map[string]int64{"first_token": 100}})
	}
	h.count(t)
	got, _ := h.scrape(t)
	check(t, got, map[string]float64{
		`perch_events_missed_total`: 5000 - 4096, `perch_turns_total{end="done"}`: 4096, `perch_turn_stage_seconds{stage="first_token"}_count`: 4096,
	})
}

// TestMetricsOfAPartThatPanics checks that a metric that panics does not hide the others, and that its panic value is
// not served.
func TestMetricsOfAPartThatPanics(t *testing.T) {
	h := newAppliance(t)
	h.visit(t, robotA, "one")
	h.partsOf = func() []admin.Part { panic("secret") }
	h.scrape(t)
	got, text := h.scrape(t)
	check(t, got, map[string]float64{`perch_robots_known`: 1, `promhttp_metric_handler_errors_total{cause="gathering"}`: 1})
	if strings.Contains(text, "secret") || strings.Contains(text, "perch_part_up") {
		t.Errorf("it shows %s", text)
	}
}

// TestMetricsRunEnds checks that Run returns when its context ends and when the bus is closed.
func TestMetricsRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAppliance(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		run := func(ctx context.Context) {
			h.metrics.Run(ctx, h.bus.Read())
			ended <- struct{}{}
		}
		go run(ctx)
		synctest.Wait()
		h.bus.Publish(robotA, "s1", event.Misheard{})
		synctest.Wait()
		w := httptest.NewRecorder()
		h.engine.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		check(t, parse(t, w.Body.Bytes()), map[string]float64{`perch_utterances_total{result="misheard"}`: 1})
		cancel()
		<-ended
		go run(t.Context())
		synctest.Wait()
		h.bus.Close()
		<-ended
	})
}

// TestMetricsBehindAKey checks the metrics with the admin token, as on the home network.
func TestMetricsBehindAKey(t *testing.T) {
	h := newAppliance(t)
	e, err := httpserver.NewEngine(slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	h.metrics.Routes(e.Group("", httpserver.Guard(httpserver.NewKey("open sesame", "admin-token", "X-Admin-Token").Check)))
	for _, c := range []struct {
		method, key, accept string
		status              int
		kind                string
	}{
		{"GET", "open sesame", "", 200, "text/plain; version=0.0.4; charset=utf-8"},
		{"GET", "open sesame", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", 200,
			"text/plain; version=0.0.4; charset=utf-8"},
		{"GET", "open sesame", "text/html", 200, "text/plain; version=0.0.4; charset=utf-8"},
		{"GET", "", "", 401, "application/json; charset=utf-8"},
		{"GET", "wrong", "", 401, "application/json; charset=utf-8"},
		{"POST", "open sesame", "", 405, "application/json; charset=utf-8"},
	} {
		r := httptest.NewRequest(c.method, "/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+c.key)
		r.Header.Set("Accept", c.accept)
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if kind := w.Header().Get("Content-Type"); w.Code != c.status || !strings.HasPrefix(kind, c.kind) || strings.Contains(w.Body.String(),
			"perch_") != (c.status == 200) {
			t.Errorf("%+v: %d %s %.100s", c, w.Code, kind, w.Body)
		}
	}
}

// TestMetricsAreWellNamed checks the metrics with the linter of Prometheus, and that they are separate from those of
// another appliance in the same program.
func TestMetricsAreWellNamed(t *testing.T) {
	h, other := newAppliance(t), newAppliance(t)
	other.bus.Publish("", "", event.Misheard{})
	other.count(t)
	h.count(t)
	series, text := h.scrape(t)
	check(t, series, map[string]float64{`perch_utterances_total{result="misheard"}`: 0})
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	must.Succeed(t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "perch_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
