package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

const (
	// idleSettles is how long the benchmark waits until an appliance is idle. The appliance gives memory
	// back to the kernel half a minute after the last event.
	idleSettles = 36 * time.Second
	idleCounted = time.Minute // how long wake-ups are counted
	everSeen    = 1000        // number of robots that the third appliance knows
)

// BenchmarkIdle measures idle appliances: how often they and their brokers wake up in a minute, and their memory. One
// appliance knows no robot, one has an idle robot that is connected by MQTT, and one knows many robots that are not
// connected.
func BenchmarkIdle(b *testing.B) {
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		var robots sync.WaitGroup
		none, one, many := startIdle(b, b.TempDir()), startIdle(b, b.TempDir()), startIdle(b, knowing(b, everSeen))
		<-asleep(ctx, b, one, "A0:B1:C2:D3:E4:F5", &robots)
		time.Sleep(idleSettles)
		watched := map[string]*wakes{"none": {pid: none.cmd.Process.Pid}, "one": {pid: one.cmd.Process.Pid}, "broker": {pid: brokerOf(b, none.cmd.Process.Pid)}}
		countWakes(b, watched)
		for name, w := range watched {
			b.ReportMetric(float64(w.times), "wake-ups-"+name)
			b.ReportMetric(float64(w.switches), "switches-"+name)
		}
		held := func(p *process) float64 {
			return heldMB(b, p.cmd.Process.Pid, "Anonymous") + heldMB(b, brokerOf(b, p.cmd.Process.Pid), "Anonymous")
		}
		b.ReportMetric(held(none), "MB-anonymous-none")
		b.ReportMetric(held(one), "MB-anonymous-one")
		b.ReportMetric(held(many)-held(none), "MB-more-for-1000")
		cancel()
		robots.Wait()
		none.stop()
		one.stop()
		many.stop()
	}
}

// wakes counts how often a process has woken up: times is how often a thread ran after a period in which none ran,
// and switches is the number of the threads' voluntary context switches. When a timer fires, Go runs several threads
// one after the other, so switches is larger than times.
type wakes struct {
	pid             int
	times, switches int
	ran             bool // whether a thread ran in the last period
}

// countWakes counts the wake-ups of processes for the duration idleCounted, in periods of 50 ms.
func countWakes(b *testing.B, all map[string]*wakes) {
	before := map[string]int{}
	for name, w := range all {
		before[name] = switches(b, w.pid)
	}
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for range idleCounted / (50 * time.Millisecond) {
		<-every.C
		for name, w := range all {
			now := switches(b, w.pid)
			ran := now > before[name]
			if ran && !w.ran {
				w.times++
			}
			w.switches, w.ran, before[name] = w.switches+now-before[name], ran, now
		}
	}
}

// startIdle runs the appliance with its broker; its robots connect by MQTT.
func startIdle(b *testing.B, data string) *process {
	b.Helper()
	program, env := benchedProgram(b)
	a := begin(b, program, data, nil, append(env, "PERCH_ROBOTS_TRANSPORT=mqtt")...)
	a.up()
	return a
}

// asleep starts a robot that stays connected by MQTT and does nothing until ctx ends. connected is closed when the
// appliance has listed the robot's tools, or when the robot ends.
func asleep(ctx context.Context, b *testing.B, a *process, mac string, robots *sync.WaitGroup) (connected chan struct{}) {
	b.Helper()
	connected = make(chan struct{})
	once := sync.OnceFunc(func() { close(connected) })
	robot, err := simrobot.New(simrobot.Options{OTA: a.ota(), MAC: mac, Asleep: true, Forever: true, Transport: device.MQTT,
		Observe: func(o simrobot.Observation) {
			if l, is := o.(simrobot.Listed); is && l.Next == "" {
				once()
			}
		}})
	must.Succeed(b, err)
	robots.Go(func() {
		defer once()
		if err := robot.Run(ctx); err != nil && ctx.Err() == nil {
			b.Error(err)
		}
	})
	return connected
}

// knowing returns a data directory with a number of adopted robots.
func knowing(b *testing.B, robots int) (data string) {
	b.Helper()
	data = b.TempDir()
	c := appliancetest.Config()
	a := must.Value(appliance.New(&c, appliancetest.Options(data)))(b)
	defer a.Close()
	now := time.Now()
	a.Robots.Welcome(time.Time{})
	for n := range robots {
		id := device.ID(fmt.Sprintf("a0000000%04x", n))
		a.Robots.CheckIn(device.CheckIn{ID: id, Board: "m5stack-stack-chan", Firmware: "1.2.4", Address: "10.0.0.1"}, now)
		must.Value(a.Robots.Adopt(string(id), now))(b)
	}
	return data
}

// switches returns the number of voluntary context switches of a process's threads.
func switches(b *testing.B, pid int) (n int) {
	for _, path := range must.Value(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)))(b) {
		if text, err := os.ReadFile(path); err == nil { // fails if the thread has ended
			n += number(b, text, "voluntary_ctxt_switches")
		}
	}
	return n
}

// number returns a numeric field of a file in /proc.
func number(b *testing.B, text []byte, field string) int {
	b.Helper()
	_, after, _ := bytes.Cut(text, []byte("\n"+field+":"))
	words := strings.Fields(string(after))
	if len(words) == 0 {
		b.Fatalf("no %s in %s", field, text)
	}
	n := must.Value(strconv.Atoi(words[0]))(b)
	return n
}
