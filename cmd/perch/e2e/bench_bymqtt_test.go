package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// idleRobots are connected by MQTT and do not talk.
const idleRobots = 100

// BenchmarkIdleByMQTT is what robots cost that are connected and do nothing, with
// their signs of life: of the processor, and of the process's memory with all that
// their check-ins have left there. BenchmarkConnected of gateway/robot has what a
// connection itself holds.
func BenchmarkIdleByMQTT(b *testing.B) {
	a := begin(b, perchBinary(b), b.TempDir(), nil, "PERCH_MQTT_BROKER=none", "PERCH_ROBOTS_TRANSPORT=mqtt")
	a.up()
	defer a.stop()
	const settle, measured = 10 * time.Second, 60 * time.Second
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		var robots sync.WaitGroup
		<-asleep(ctx, b, a, "A0:B1:C2:D3:E5:00", &robots) // the first has the phrases synthesized
		time.Sleep(settle)
		before, alone := a.memory(b, "Anonymous"), a.cpu(b)
		time.Sleep(measured / 2)
		alone = 2 * (a.cpu(b) - alone)
		var connected []chan struct{}
		for i := range idleRobots {
			connected = append(connected, asleep(ctx, b, a, fmt.Sprintf("A0:B1:C2:D3:E4:%02X", i), &robots))
		}
		for _, one := range connected {
			<-one
		}
		time.Sleep(settle)
		used := a.cpu(b)
		time.Sleep(measured)
		used = a.cpu(b) - used
		b.ReportMetric((a.memory(b, "Anonymous")-before)*1024/idleRobots, "kB-each")
		b.ReportMetric(100*(used-alone).Seconds()/measured.Seconds(), "%-of-a-core-for-100")
		cancel()
		robots.Wait()
	}
}

// BenchmarkFlood is what robots on WebSockets notice of somebody who floods the robots'
// MQTT port and their UDP port.
func BenchmarkFlood(b *testing.B) {
	sound, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	udp := sound.LocalAddr().String()
	_ = sound.Close()
	a := begin(b, os.Args[0], b.TempDir(), nil, "PERCH_ROBOTS_UDP="+udp, asLoadTarget+"=1")
	a.up()
	defer a.stop()
	say := appliancetest.Sentences(b, loadText)
	for b.Loop() {
		for _, flooded := range []bool{false, true} {
			ctx, cancel := context.WithCancel(b.Context())
			var flood sync.WaitGroup
			name := "calm"
			if flooded {
				name = "flooded"
				flood.Go(func() { floodUDP(ctx, udp) })
				flood.Go(func() { floodMQTT(ctx, mqttOf(b, a)) })
			}
			all := load(b, a.url, loadRobots, say, nil)
			cancel()
			flood.Wait()
			var gaps []time.Duration
			lost := 0
			for _, s := range all {
				gaps = append(gaps, s.Gaps...)
				lost += s.Dropped + s.Ignored + s.Cut + s.Bad + s.Underruns
			}
			b.ReportMetric(float64(simrobot.Quantile(gaps, 0.99).Microseconds())/1000, "ms-gap-p99-"+name)
			b.ReportMetric(float64(lost), "lost-or-dry-"+name)
		}
	}
}

// mqttOf is where an appliance's robots connect by MQTT.
func mqttOf(b *testing.B, a *process) string {
	b.Helper()
	answer, err := http.Get(a.url + "/ready")
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	var ready struct {
		Parts []struct{ Name, Note string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&ready); err != nil {
		b.Fatal(err)
	}
	for _, p := range ready.Parts {
		if address, found := strings.CutPrefix(p.Note, "on "); found && p.Name == "robots-mqtt" {
			return address
		}
	}
	b.Fatalf("robots-mqtt is nowhere in %+v", ready)
	return ""
}

// floodUDP sends 5000 datagrams in a second.
func floodUDP(ctx context.Context, to string) {
	conn, err := net.Dial("udp", to)
	if err != nil {
		return
	}
	defer conn.Close()
	datagram := make([]byte, 200)
	datagram[0] = 1
	for every := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			every.Stop()
			return
		case <-every.C:
		}
		for i := range 50 {
			datagram[7] = byte(i)
			_, _ = conn.Write(datagram) // a flood cares for nobody
		}
	}
}

// floodMQTT opens 200 connections in a second, with a wrong password or no MQTT.
func floodMQTT(ctx context.Context, to string) {
	for n, every := 0, time.NewTicker(5*time.Millisecond); ; n++ {
		select {
		case <-ctx.Done():
			every.Stop()
			return
		case <-every.C:
		}
		if n%2 == 0 {
			_, _ = mqttLogin(to, 4, "client", "a0b1c2d3e4f5", "wrong") // it is refused
			continue
		}
		if conn, err := net.Dial("tcp", to); err == nil {
			_, _ = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
			_ = conn.Close()
		}
	}
}
