package main

import "slices"

// run is one run of a package's benchmarks, and the rows of the table that it provides. A run
// without rows is only run if all are requested, and its figures are printed.
type run struct {
	folder     string // of the package
	benchmarks string // as for go test -bench
	time       string // as for go test -benchtime
	rows       []row
}

// row is a figure with a goal.
type row struct {
	name      string
	benchmark string // printed name, without the number of processors
	metric    string // its unit there
	unit      string // unit for display
	most      bool   // the goal is a maximum instead of a minimum
	goal      float64
	why       string // why the goal is not met
}

const (
	most  = true
	least = false
)

// measured returns all runs.
func measured() []run {
	const (
		program = "cmd/perch/e2e"
		pauses  = "BenchmarkPauses/pause=200ms/rule=whole"
		added   = "ms-over-the-engines-p50"
		facts   = "BenchmarkRemember/full=2000/callers="
		file    = "it is code: most of it that of Go's runtime, Anthropic's SDK (1.3 MB), net/http, protobuf, TLS, validator, DNS and BSON"
		wakes   = "disk and clock are looked at each 5 s, the connection to the broker by its library too, the registry each 10 s"
	)
	return []run{
		{program, "^BenchmarkSpoken$", "1x", []row{
			{"end of speech to first packet, embedded engines, p50", "BenchmarkSpoken", "ms-speech-to-sound-p50", "ms", most, 300, ""},
			{"sentences of these that are misunderstood", "BenchmarkSpoken", "wrong", "", most, 0, ""},
		}},
		{"cmd/perch/engines", "^BenchmarkPauses$/^pause=200ms$", "1x", []row{
			{"quiet that ends an utterance, p50", pauses, "ms-quiet-p50", "ms", most, 300, ""},
			{"sentences cut by a pause of 200 ms", pauses, "cut", "", most, 0, ""},
			{"sentences with such a pause, misunderstood", pauses, "wrong", "", most, 0, ""},
		}},
		{program, "^BenchmarkMemory$", "20x", []row{
			{"resident while idle", "BenchmarkMemory", "MB-resident-idle", "MB", most, 16, ""},
			{"size of the program's file", "BenchmarkMemory", "MB-file", "MB", most, 30, file},
		}},
		{program, "^BenchmarkTalk$", "1x", slices.Concat(startRows("100", 120, 65), startRows("200", 250, 75),
			paced("1"), paced("10"), paced("50"), paced("100"))},
		{program, "^BenchmarkAnswer$", "10x", []row{
			{"text to first audio, engines that answer at once, p50", "BenchmarkAnswer/at-once", added, "ms", most, 6,
				"a robot empties its queue when it begins to speak, so that its first packet waits 14 ms"},
			{"text to first audio, a word each 20 ms, p50", "BenchmarkAnswer/a-word-each-20ms", added, "ms", most, 45, ""},
		}},
		{program, "^BenchmarkIdle$", "1x", []row{
			{"1000 robots ever seen: memory more, program and broker", "BenchmarkIdle", "MB-more-for-1000", "MB", most, 12,
				"the broker's library keeps a record of some kilobytes for each of a robot's four topics, and copies all each second"},
			{"wake-ups a minute, no robot", "BenchmarkIdle", "wake-ups-none", "", most, 2, wakes},
			{"wake-ups a minute, one robot connected and quiet", "BenchmarkIdle", "wake-ups-one", "", most, 10, wakes},
			{"wake-ups a minute of the embedded broker", "BenchmarkIdle", "wake-ups-broker", "", most, 2,
				"its library has five tickers of a second, which cannot be set"},
		}},
		{"cmd/perch/appliance", "^BenchmarkRemember$/^full=2000$", "1s", []row{
			{"facts remembered, each on the disk before the next", facts + "1", "facts/s", "/s", least, 500, "each waits for the disk once"},
			{"facts remembered, of 16 callers", facts + "16", "facts/s", "/s", least, 500, ""},
		}},
		{"agent", "^BenchmarkMemory$/^words$", "1s", []row{
			{"look-up among 10 000 facts", "BenchmarkMemory/words", "ns/op", "ns", most, 1e6, ""},
		}},
		{program, "^BenchmarkCheckIn$", "10000x", []row{
			{"check-ins of a known robot", "BenchmarkCheckIn", "check-ins/s", "/s", least, 5000,
				"net/http and gin take most of it, and the client shares the processors"},
		}},
		{"gateway/avatar/skin", "^BenchmarkEventToSkins$/^skins=500$", "200x", []row{
			{"event to 500 skins, p99", "BenchmarkEventToSkins/skins=500", "p99-ms", "ms", most, 8,
				"read and write of the kernel are two thirds of the processor time, and the 500 clients in the same process more than half of these"},
		}},
		{"gateway/homeassistant", "^BenchmarkStateToMQTT$", "200x", []row{
			{"event to MQTT with 20 robots, p99", "BenchmarkStateToMQTT", "p99-ms", "ms", most, 3, ""},
		}},
		{program, "^BenchmarkStart$", "20x", []row{
			{"start to open port", "BenchmarkStart", "ms/start", "ms", most, 12,
				"half is any start of the program: its libraries' tables and expressions, and eleven shared libraries"},
		}},
		// From opening the page to its first view; what a robot plays against what was synthesized.
		{"gateway/owner/web", ".", "10x", nil},
		{"voice", "^Benchmark(Quality|Loss|Resamplers)$", "0.5s", nil},
	}
}

// paced returns the row of Perch's processor time relative to libopus alone at the same pace.
func paced(robots string) []row {
	return []row{{"processor time with " + robots + " talking ÷ libopus alone", "BenchmarkTalk/" + robots, "x-bare-opus-cpu", "×", most, 1.15,
		"encoded as music, libopus takes less than half of what it took when this goal was set; all together takes less, too"}}
}

// startRows returns the rows for robots that start to talk at once.
func startRows(robots string, first, gap float64) []row {
	benchmark, name := "BenchmarkTalk/"+robots, robots+" robots at once: "
	const why = "espeak-ng makes one sentence after the other, each in some 4 ms; " +
		"the simulated robots, which encode and decode as much as Perch, share the processors"
	return []row{
		{name + "first audio, p90", benchmark, "ms-speech-to-sound-p90", "ms", most, first, why},
		{name + "gap between packets, p99", benchmark, "ms-gap-p99", "ms", most, gap, why},
		{name + "packets late", benchmark, "times-dry", "", most, 0, why},
		{name + "turns without an answer", benchmark, "turns-unanswered", "", most, 0, ""},
	}
}

// talkCounts returns the numbers of simultaneous robots in BenchmarkTalk.
func talkCounts() []int { return []int{1, 10, 50, 100, 200} }
