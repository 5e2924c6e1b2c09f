package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
)

// sensingRobots each sense as much as is let in, for as long as another talks:
// its turns take 30 s and more.
const (
	sensingRobots = 20
	sensingEvery  = time.Second / 50
	sensingTurns  = 3
)

// benchKey opens the bridge of a load's target.
const benchKey = "a key for the bench"

// BenchmarkGreeting is from a face to the first words of the greeting.
func BenchmarkGreeting(b *testing.B) {
	always := appliancetest.Written(b, `behaviours: {greeter: {hours: "00:00-24:00"}}`)
	a := start(b, b.TempDir(), "--config", always)
	defer a.stop()
	var all []time.Duration
	for i := 0; b.Loop(); i++ {
		var seen, greeted time.Time
		robot, err := simrobot.New(simrobot.Options{
			OTA: a.ota(), MAC: fmt.Sprintf("A0:B1:C2:D3:E6:%02X", i%256), Firmware: "dotty",
			Events: []xiaozhi.Event{{Name: "face_detected", Data: []byte("{}")}},
			Observe: func(e simrobot.Observation) {
				switch e.(type) {
				case simrobot.Sensed:
					seen = time.Now()
				case simrobot.SentenceShown:
					greeted = time.Now()
				}
			},
		})
		if err == nil {
			err = robot.Run(b.Context())
		}
		if err != nil || greeted.IsZero() {
			b.Fatalf("no greeting: %v", err)
		}
		all = append(all, greeted.Sub(seen))
	}
	b.ReportMetric(float64(simrobot.Quantile(all, 0.5).Microseconds())/1000, "ms-face-to-greeting-p50")
	b.ReportMetric(float64(simrobot.Quantile(all, 1).Microseconds())/1000, "ms-face-to-greeting-max")
}

// BenchmarkSenses is what a robot that talks notices of twenty others that
// sense fifty things a second each, with one reader of the feed that reads and
// one that does not, and what becomes of what they sense.
func BenchmarkSenses(b *testing.B) {
	a := startScripted(b, b.TempDir())
	defer a.stop()
	say := appliancetest.Sentences(b, loadText)
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		feed := a.follow(b, ctx, "/api/perception/feed", benchKey, "")
		a.stall(b, ctx)
		first := a.follow(b, ctx, "/api/v1/events", a.token, "")
		begun, talked := make(chan struct{}), make(chan struct{})
		var robots sync.WaitGroup
		var sent, turned atomic.Int64
		for i := range sensingRobots {
			robots.Go(func() { sensor(b, a, i, begun, talked, &sent, &turned) })
		}
		time.Sleep(3 * time.Second) // all are here
		close(begun)
		time.Sleep(2 * time.Second)
		before, began := a.memory(b, "Anonymous"), time.Now()
		all := load(b, a.url, 1, slices.Repeat(say, sensingTurns), nil)
		b.ReportMetric(time.Since(began).Seconds(), "s-of-talk")
		close(talked)
		robots.Wait()
		after := a.memory(b, "Anonymous")
		time.Sleep(time.Second) // what is on its way arrives
		metrics := a.metrics(b)
		again := a.follow(b, ctx, "/api/v1/events", a.token, first.id())
		time.Sleep(time.Second)
		b.ReportMetric(float64(simrobot.Quantile(all[0].Gaps, 0.99).Microseconds())/1000, "ms-gap-p99")
		b.ReportMetric(float64(all[0].Dropped+all[0].Ignored+all[0].Cut+all[0].Bad+all[0].Underruns), "packets-lost-or-dry")
		b.ReportMetric(float64(sent.Load()), "events-sent")
		// What behaviours tell of their turns of a head is told beside it.
		told := float64(sent.Load() + turned.Load())
		b.ReportMetric(told-metrics["perch_perceived_total"], "events-lost")
		b.ReportMetric(metrics["perch_perceived_dropped_total"], "events-refused")
		b.ReportMetric(told-float64(feed.count("event: message")), "events-not-on-feed")
		b.ReportMetric(metrics["perch_feed_readers_dropped_total"], "stalled-readers-dropped")
		b.ReportMetric(float64(len(all[0].Turns)-int(again.count("event: heard"))), "conversation-events-pushed-out")
		b.ReportMetric(before, "MB-anonymous-before")
		b.ReportMetric(after, "MB-anonymous-after")
		cancel()
		for _, f := range []*follower{feed, first, again} {
			f.reading.Wait()
		}
	}
}

// sensor is a robot that senses.
func sensor(b *testing.B, a *process, i int, begun, talked <-chan struct{}, sent, turned *atomic.Int64) {
	robot, err := simrobot.New(simrobot.Options{
		OTA: a.ota(), MAC: fmt.Sprintf("A0:B1:C2:D3:E5:%02X", i), Firmware: "dotty", Forever: true,
		Events: []xiaozhi.Event{{Name: "state_changed", Data: []byte(`{"state":"idle"}`)}},
		Observe: func(e simrobot.Observation) {
			switch e.(type) {
			case simrobot.Sensed:
				sent.Add(1)
			case simrobot.HeadMoved:
				turned.Add(1)
			}
		},
	})
	if err != nil {
		b.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		_ = robot.Run(ctx) // it is switched off below
	})
	<-begun
	every := time.NewTicker(sensingEvery)
	defer every.Stop()
	for n := 0; ; n++ {
		select {
		case <-every.C:
			e := xiaozhi.Event{Name: "imu_sample", Data: []byte(`{"x":0.1,"y":0.2,"z":9.8}`)}
			if n%10 == 0 {
				e = xiaozhi.Event{Name: "sound_event", Data: []byte(`{"direction":"left","balance":0.4,"energy":600000000}`)}
			}
			robot.Sense(e)
		case <-talked:
			time.Sleep(time.Second) // the last of them leave
			return
		}
	}
}

// follower reads server-sent events and counts their lines.
type follower struct {
	reading sync.WaitGroup
	mu      sync.Mutex
	lines   map[string]int64 // but for data and ids
	last    string           // id of the first message
}

func (f *follower) count(line string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lines[line]
}

func (f *follower) id() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// stream asks, and returns the body of the answer.
func (p *process) stream(b *testing.B, ctx context.Context, path, key, lastID string) io.ReadCloser {
	b.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("%s: %v %v", path, answer, err)
	}
	return answer.Body
}

func (p *process) follow(b *testing.B, ctx context.Context, path, key, lastID string) *follower {
	body := p.stream(b, ctx, path, key, lastID)
	f := &follower{lines: map[string]int64{}}
	f.reading.Go(func() {
		defer body.Close()
		for s := bufio.NewScanner(body); s.Scan(); {
			f.mu.Lock()
			if id, is := strings.CutPrefix(s.Text(), "id: "); is && f.last == "" {
				f.last = id
			}
			if strings.HasPrefix(s.Text(), "event: ") {
				f.lines[s.Text()]++
			}
			f.mu.Unlock()
		}
	})
	return f
}

// stall asks for the feed and reads nothing of it.
func (p *process) stall(b *testing.B, ctx context.Context) {
	c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	context.AfterFunc(ctx, func() { c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "GET /api/perception/feed HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", benchKey); err != nil {
		b.Fatal(err)
	}
}

// metrics are those without labels.
func (p *process) metrics(b *testing.B) map[string]float64 {
	body := p.stream(b, b.Context(), "/metrics", p.token, "")
	defer body.Close()
	all := map[string]float64{}
	for s := bufio.NewScanner(body); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			all[name] = v
		}
	}
	return all
}
