package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// shownRelays is how many avatar programs show what the robots do.
const shownRelays = 20

// avatarPrograms, in the environment, are the addresses of those.
const avatarPrograms = "PERCH_TEST_AVATAR_PROGRAMS"

// BenchmarkRelays is what robots notice of avatar programs beside their talks.
func BenchmarkRelays(b *testing.B) {
	say := appliancetest.Sentences(b, loadText)
	for b.Loop() {
		for _, relays := range []int{0, shownRelays} {
			var programs []*appliancetest.Avatar
			var addresses []string
			for range relays {
				p := appliancetest.NewAvatar(b, "")
				programs, addresses = append(programs, p), append(addresses, p.Address)
			}
			a := begin(b, os.Args[0], b.TempDir(), nil, asLoadTarget+"=1", avatarPrograms+"="+strings.Join(addresses, " "))
			a.up()
			before := a.cpu(b)
			all := load(b, a.url, loadRobots, say, nil)
			used := a.cpu(b) - before
			a.stop()
			var gaps []time.Duration
			lost, told, mouths := 0, 0, 0
			for _, s := range all {
				gaps = append(gaps, s.Gaps...)
				lost += s.Dropped + s.Ignored + s.Cut + s.Bad + s.Underruns
			}
			for _, p := range programs {
				p.Kill()
				told += len(p.All())
				mouths += len(p.Of("stackchan.mouth"))
			}
			name := "without"
			if relays > 0 {
				name = "with-20"
				b.ReportMetric(float64(told)/shownRelays, "messages-to-each")
				b.ReportMetric(float64(mouths)/shownRelays, "mouth-to-each")
			}
			b.ReportMetric(float64(simrobot.Quantile(gaps, 0.99).Microseconds())/1000, "ms-gap-p99-"+name)
			b.ReportMetric(float64(lost), "lost-or-dry-"+name)
			b.ReportMetric(used.Seconds(), "s-cpu-"+name)
		}
	}
}
