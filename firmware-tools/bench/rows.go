package main

// run is one run of a package's benchmarks, and the rows of the table that it gives.
// Without rows its figures are printed alone.
type run struct {
	folder     string // of the package
	benchmarks string // as go test -bench has it
	time       string // as go test -benchtime has it
	rows       []row
}

// row is a figure that the appliance is held to.
type row struct {
	name      string
	benchmark string // as it is printed, without the number of processors
	metric    string // its unit there
	unit      string // the same for people
	most      bool   // the goal is the most that it may be, and not the least
	goal      float64
	why       string // the goal is not met
}

const (
	most  = true
	least = false
)

// measured is the whole list.
func measured() []run {
	const (
		program = "cmd/perch"
		pauses  = "BenchmarkPauses/pause=200ms/rule=whole"
		added   = "ms-over-the-engines-p50"
	)
	return []run{
		{"cmd/perch/appliance", "^BenchmarkPauses$/^pause=200ms$", "1x", []row{
			{"quiet that ends an utterance, p50", pauses, "ms-quiet-p50", "ms", most, 260, ""},
			{"sentences cut by a pause of 200 ms", pauses, "cut", "", most, 0, ""},
			{"sentences with such a pause, misunderstood", pauses, "wrong", "", most, 0, ""},
		}},
		{program, "^BenchmarkMemory$", "20x", []row{
			{"resident while idle", "BenchmarkMemory", "MB-resident-idle", "MB", most, 16, ""},
		}},
		{program, "^BenchmarkTalk$", "1x", append(beginning("100", 120, 65), beginning("200", 250, 75)...)},
		{program, "^BenchmarkAnswer$", "10x", []row{
			{"text to first audio, engines that answer at once, p50", "BenchmarkAnswer/at-once", added, "ms", most, 6, ""},
			{"text to first audio, a word each 20 ms, p50", "BenchmarkAnswer/a-word-each-20ms", added, "ms", most, 45, ""},
		}},
		{"agent", "^BenchmarkMemory$/^words$", "1s", []row{
			{"look-up among 10 000 facts", "BenchmarkMemory/words", "ns/op", "ns", most, 1e6, ""},
		}},
		{program, "^BenchmarkCheckIn$", "4000x", []row{
			{"check-ins of a known robot", "BenchmarkCheckIn", "check-ins/s", "/s", least, 5000, ""},
		}},
		{"gateway/skin", "^BenchmarkEventToSkins$/^skins=500$", "200x", []row{
			{"event to 500 skins, p99", "BenchmarkEventToSkins/skins=500", "p99-ms", "ms", most, 8, ""},
		}},
		{"gateway/homeassistant", "^BenchmarkStateToMQTT$", "200x", []row{
			{"event to MQTT with 20 robots, p99", "BenchmarkStateToMQTT", "p99-ms", "ms", most, 3, ""},
		}},
		{program, "^BenchmarkStart$", "20x", []row{
			{"start to open port", "BenchmarkStart", "ms/start", "ms", most, 12, ""},
		}},
	}
}

// beginning are the rows of so many robots that begin to talk at once.
func beginning(robots string, first, gap float64) []row {
	benchmark, name := "BenchmarkTalk/"+robots, robots+" robots at once: "
	return []row{
		{name + "first audio, p90", benchmark, "ms-speech-to-sound-p90", "ms", most, first, ""},
		{name + "gap between packets, p99", benchmark, "ms-gap-p99", "ms", most, gap, ""},
		{name + "packets late", benchmark, "times-dry", "", most, 0, ""},
		{name + "turns without an answer", benchmark, "turns-unanswered", "", most, 0, ""},
	}
}

// crowds are how many robots talk at once in BenchmarkTalk.
func crowds() []int { return []int{1, 10, 50, 100, 200} }
