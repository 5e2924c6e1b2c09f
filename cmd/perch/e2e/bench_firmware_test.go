package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// upgradingRobots take an image of that size at once, while another talks.
const (
	upgradingRobots = 30
	upgradeBytes    = 4 << 20
	upgradeTurns    = 2
)

// BenchmarkUpgrades is what a robot that talks notices of thirty others that are
// upgraded at once, and whether each of those has its part of the bandwidth.
func BenchmarkUpgrades(b *testing.B) {
	a := startScripted(b, b.TempDir())
	defer a.stop()
	say := appliancetest.Sentences(b, loadText)
	for b.Loop() {
		robots := make([]*simrobot.Robot, upgradingRobots)
		for i := range robots {
			made, err := simrobot.New(simrobot.Options{OTA: a.ota(), MAC: fmt.Sprintf("A0:B1:C2:D3:E7:%02X", i), Upgrades: true})
			if err == nil {
				err = made.Boot(b.Context()) // which confirms what it runs
			}
			if err != nil {
				b.Fatal(err)
			}
			robots[i] = made
		}
		a.publish(b, simrobot.Image("9.9.9", upgradeBytes))
		before := a.memory(b, "Anonymous")
		took := make([]time.Duration, upgradingRobots)
		var upgrading sync.WaitGroup
		var all []simrobot.Stats
		upgrading.Go(func() {
			all = load(b, a.url, 1, slices.Repeat(say, upgradeTurns), nil)
		})
		time.Sleep(4 * time.Second) // it is being answered
		for i, robot := range robots {
			upgrading.Go(func() {
				began := time.Now()
				if err := robot.Boot(b.Context()); err != nil { // offered, downloaded, booted
					b.Error(err)
				}
				took[i] = time.Since(began)
			})
		}
		peak := before
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			peak = max(peak, a.memory(b, "Anonymous"))
		}
		upgrading.Wait()
		b.ReportMetric(float64(simrobot.Quantile(all[0].Gaps, 0.99).Microseconds())/1000, "ms-gap-p99")
		b.ReportMetric(float64(all[0].Dropped+all[0].Ignored+all[0].Cut+all[0].Bad+all[0].Underruns), "packets-lost-or-dry")
		b.ReportMetric(simrobot.Quantile(took, 0).Seconds(), "s-upgrade-fastest")
		b.ReportMetric(simrobot.Quantile(took, 1).Seconds(), "s-upgrade-slowest")
		b.ReportMetric(before, "MB-anonymous-before")
		b.ReportMetric(peak, "MB-anonymous-peak")
		catalogue := a.stream(b, b.Context(), "/api/v1/firmware", a.token, "")
		text, err := io.ReadAll(catalogue)
		if err != nil {
			b.Fatal(err)
		}
		_ = catalogue.Close()
		b.ReportMetric(float64(bytes.Count(text, []byte(`"stage":"installed"`))), "robots-upgraded")
	}
}

// publish puts an image into the catalogue and rolls it out to everybody.
func (p *process) publish(b *testing.B, image []byte) {
	b.Helper()
	rollout := []byte(`{"boards":["m5stack-stack-chan"],"percent":100,"auto":true}`)
	if err := errors.Join(p.ask(b.Context(), http.MethodPost, "/api/v1/firmware?board=m5stack-stack-chan", image, nil),
		p.ask(b.Context(), http.MethodPost, fmt.Sprintf("/api/v1/firmware/%x/rollout", sha256.Sum256(image)), rollout, nil)); err != nil {
		b.Fatal(err)
	}
}
