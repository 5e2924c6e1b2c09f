package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/device"
)

// BenchmarkMemoryOfManyRobots is what an appliance with its broker holds that knows a
// thousand robots, of which none is there.
func BenchmarkMemoryOfManyRobots(b *testing.B) {
	data := b.TempDir()
	c := appliancetest.Config()
	a, err := appliance.New(&c, appliancetest.Options(data))
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	a.Robots.Welcome(time.Time{})
	for n := range 1000 {
		id := device.ID(fmt.Sprintf("a0000000%04x", n))
		address := fmt.Sprintf("10.0.%d.%d", n/256, n%256)
		a.Robots.CheckIn(device.CheckIn{ID: id, Board: "m5stack-stack-chan", Firmware: "1.2.4", Address: address}, now)
		if _, err := a.Robots.Adopt(string(id), now); err != nil {
			b.Fatal(err)
		}
	}
	a.Close()
	p := start(b, data)
	defer p.stop()
	for b.Loop() {
		time.Sleep(45 * time.Second) // until it has given back what the start needed
	}
	b.ReportMetric(p.memory(b, "Rss"), "MB-resident")
	b.ReportMetric(p.memory(b, "Anonymous"), "MB-anonymous")
	children, err := exec.Command("pgrep", "-P", strconv.Itoa(p.cmd.Process.Pid)).Output()
	if err != nil {
		b.Fatal(err)
	}
	broker, err := strconv.Atoi(strings.Fields(string(children))[0])
	if err != nil {
		b.Fatal(err)
	}
	of := process{cmd: &exec.Cmd{Process: &os.Process{Pid: broker}}}
	b.ReportMetric(of.memory(b, "Rss"), "MB-resident-broker")
	b.ReportMetric(of.memory(b, "Anonymous"), "MB-anonymous-broker")
}
