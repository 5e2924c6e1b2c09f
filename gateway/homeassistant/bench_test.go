package homeassistant

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/must"
)

// BenchmarkStateToMQTT measures how long a change of agent state takes from the
// bus to a subscriber of the embedded broker, with 20 robots talking.
func BenchmarkStateToMQTT(b *testing.B) {
	h := newHarness()
	var robots []device.ID
	for i := range 20 {
		id := device.ID(fmt.Sprintf("a0b1c2d3e5%02x", i))
		h.meet(id)
		robots = append(robots, id)
	}
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(b)
	h.options.Broker, h.options.Listen, h.options.User, h.options.Password = "embedded", l.Addr().String(), user, password
	l.Close()
	m := must.Value(New(h.options))(b)
	end := h.begin(b, m)
	defer end()
	arrived := subscribe(b, h.options.Listen)
	for _, id := range robots {
		h.happens(id, "s", event.RobotOnline{})
	}
	var mu sync.Mutex
	var took []time.Duration
	b.ResetTimer()
	for range b.N {
		for _, id := range robots {
			for _, e := range []event.Event{event.ListeningStarted{}, event.ThinkingStarted{}, event.SpeakingStarted{}} {
				at := time.Now()
				h.happens(id, "s", e)
				if e == (event.Event)(event.SpeakingStarted{}) {
					want := string(id) + string(agent.Speaking)
					for got := range arrived {
						if got == want {
							break
						}
					}
					mu.Lock()
					took = append(took, time.Since(at))
					mu.Unlock()
				}
			}
		}
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// begin runs a mirror for a benchmark, and waits until the mirror is connected. end stops the mirror.
func (h *harness) begin(b *testing.B, m *Mirror) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = m.Run(ctx)
	}()
	for !m.Status().Connected {
		time.Sleep(time.Millisecond)
	}
	return func() {
		cancel()
		<-ended
		h.bus.Close()
	}
}

// subscribe returns a channel that receives the robot and the state of every published state document.
func subscribe(b *testing.B, at string) <-chan string {
	arrived := make(chan string, 10_000)
	o := mqtt.NewClientOptions().AddBroker("mqtt://" + at).SetClientID("bench").SetUsername(user).SetPassword(password).SetAutoReconnect(false)
	c := mqtt.NewClient(o)
	if t := c.Connect(); !t.WaitTimeout(5*time.Second) || t.Error() != nil {
		b.Fatal(t.Error())
	}
	b.Cleanup(func() { c.Disconnect(100) })
	t := c.Subscribe("perch/+/state", 1, func(_ mqtt.Client, m mqtt.Message) {
		robot := strings.Split(m.Topic(), "/")[1]
		_, rest, _ := strings.Cut(string(m.Payload()), `"agent_state":"`)
		state, _, _ := strings.Cut(rest, `"`)
		arrived <- robot + state
	})
	if !t.WaitTimeout(5*time.Second) || t.Error() != nil {
		b.Fatal(t.Error())
	}
	return arrived
}
