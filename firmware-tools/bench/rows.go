package main

import "slices"

// run is a run of benchmarks of one package, with the rows of the table that they fill. A run
// without rows takes place only if all benchmarks were requested.
type run struct {
	folder     string // folder of the package
	benchmarks string // value of go test -bench
	time       string // value of go test -benchtime
	rows       []row
}

// row is a row of the table: a figure with a goal.
type row struct {
	name      string // key of the figure in the baseline
	benchmark string // name in the output of go test, without the number of processors
	metric    string // unit in the output of go test
	unit      string // unit in the table
	isMax     bool   // the goal is a maximum, not a minimum
	goal      float64
	why       string // reason why the goal is not met, for the table; may be empty
}

// Values of row.isMax.
const (
	maximum = true
	minimum = false
)

// allRuns returns all runs.
func allRuns() []run {
	const (
		program = "cmd/perch/e2e"
		pauses  = "BenchmarkPauses/pause=350ms/rule=sentences"
		added   = "ms-over-the-engines-p50"
		facts   = "BenchmarkRemember/full=2000/callers="
		file    = "most of the file is code of Go's runtime, Anthropic's SDK (1.3 MB), net/http, protobuf, TLS, validator, DNS and BSON"
		wakes   = "the disk, the clock and (by its library) the connection to the broker are checked every 5 s, the registry every 10 s"
	)
	return []run{
		{program, "^BenchmarkSpoken$", "1x", []row{
			{"end of speech to first packet, embedded engines, p50", "BenchmarkSpoken", "ms-speech-to-sound-p50", "ms", maximum, 600, ""},
			{"sentences of these that are misunderstood", "BenchmarkSpoken", "wrong", "", maximum, 0, ""},
		}},
		{program, "^BenchmarkSpokenToModel$", "1x", []row{
			{"end of speech to first packet, a model that takes 400 ms, p50", "BenchmarkSpokenToModel", "ms-speech-to-sound-p50", "ms", maximum, 750, ""},
		}},
		{"cmd/perch/engines", "^BenchmarkPauses$/^pause=350ms$", "1x", []row{
			{"quiet that ends an utterance, p50", pauses, "ms-quiet-p50", "ms", maximum, 600, ""},
			{"sentences cut by a pause of 350 ms", pauses, "cut", "", maximum, 0, "the soft end of a word counts as silence, too"},
			{"sentences with such a pause, misunderstood", pauses, "wrong", "", maximum, 0, ""},
		}},
		{"cmd/perch/engines", "^BenchmarkEndOfTurn$/^rule=sentences$", "1x", slices.Concat(endRows("known", 10, 600), endRows("free", 25, 900))},
		{program, "^BenchmarkMemory$", "20x", []row{
			{"resident while idle", "BenchmarkMemory", "MB-resident-idle", "MB", maximum, 16, ""},
			{"size of the program's file", "BenchmarkMemory", "MB-file", "MB", maximum, 30, file},
		}},
		{program, "^BenchmarkTalk$", "1x", slices.Concat(startRows("100", 120, 65), startRows("200", 250, 75),
			processorRows("1"), processorRows("10"), processorRows("50"), processorRows("100"))},
		{program, "^BenchmarkCrowd$", "1x", []row{
			{"100 people at once, embedded recognizer: first sound, p95", "BenchmarkCrowd", "ms-sound-p95", "ms", maximum, 2000, ""},
			{"100 people at once, embedded recognizer: words recognized, p95", "BenchmarkCrowd", "ms-words-p95", "ms", maximum, 12000, ""},
			{"100 people at once, embedded recognizer: told that it took too long", "BenchmarkCrowd", "unrecognized", "", maximum, 0,
				"the recognizer takes about 150 ms of a processor for each, and the simulated robots run on the same processors"},
		}},
		{program, "^BenchmarkAnswer$", "10x", []row{
			{"text to first audio, engines that answer at once, p50", "BenchmarkAnswer/at-once", added, "ms", maximum, 6,
				"the first packet waits 14 ms, because a robot empties its queue when it begins to speak"},
			{"text to first audio, a word each 20 ms, p50", "BenchmarkAnswer/a-word-each-20ms", added, "ms", maximum, 45, ""},
		}},
		{program, "^BenchmarkIdle$", "1x", []row{
			{"1000 robots ever seen: memory more, program and broker", "BenchmarkIdle", "MB-more-for-1000", "MB", maximum, 12,
				"the broker's library stores some kilobytes for each of a robot's four topics, and copies all of them every second"},
			{"wake-ups a minute, no robot", "BenchmarkIdle", "wake-ups-none", "", maximum, 2, wakes},
			{"wake-ups a minute, one robot connected and quiet", "BenchmarkIdle", "wake-ups-one", "", maximum, 10, wakes},
			{"wake-ups a minute of the embedded broker", "BenchmarkIdle", "wake-ups-broker", "", maximum, 2,
				"its library has five tickers with a fixed interval of one second"},
		}},
		{"cmd/perch/appliance", "^BenchmarkRemember$/^full=2000$", "1s", []row{
			{"facts remembered, each on the disk before the next", facts + "1", "facts/s", "/s", minimum, 500, "each fact waits for one write to the disk"},
			{"facts remembered, of 16 callers", facts + "16", "facts/s", "/s", minimum, 500, ""},
		}},
		{"agent", "^BenchmarkMemory$/^words$", "1s", []row{
			{"look-up among 10 000 facts", "BenchmarkMemory/words", "ns/op", "ns", maximum, 1e6, ""},
		}},
		{program, "^BenchmarkCheckIn$", "10000x", []row{
			{"check-ins of a known robot", "BenchmarkCheckIn", "check-ins/s", "/s", minimum, 5000,
				"net/http and gin take most of the time, and the client runs on the same processors"},
		}},
		{"gateway/avatar/skin", "^BenchmarkEventToSkins$/^skins=500$", "200x", []row{
			{"event to 500 skins, p99", "BenchmarkEventToSkins/skins=500", "p99-ms", "ms", maximum, 8,
				"two thirds of the processor time are reads and writes in the kernel, more than half of them by the 500 clients in the same process"},
		}},
		{"gateway/homeassistant", "^BenchmarkStateToMQTT$", "200x", []row{
			{"event to MQTT with 20 robots, p99", "BenchmarkStateToMQTT", "p99-ms", "ms", maximum, 3, ""},
		}},
		{program, "^BenchmarkStart$", "20x", []row{
			{"start to open port", "BenchmarkStart", "ms/start", "ms", maximum, 12,
				"half of the time is spent on eleven shared libraries and on tables and regular expressions of the Go libraries"},
		}},
		// Without rows: the time from opening the page to its first view, and the quality of the
		// sound that robots play.
		{"gateway/owner/web", ".", "10x", nil},
		{"voice", "^Benchmark(Quality|Loss|Resamplers)$", "0.5s", nil},
	}
}

// processorRows returns the row for Perch's processor time while a number of robots talk, divided by the
// time that libopus, the sound codec, needs alone.
func processorRows(robots string) []row {
	return []row{{"processor time with " + robots + " talking ÷ libopus alone", "BenchmarkTalk/" + robots, "x-bare-opus-cpu", "×", maximum, 1.15,
		"libopus now encodes the sound as music, and takes less than half of the time that it took when this goal was set"}}
}

// startRows returns the rows for a number of robots that all start a conversation at the same
// moment. first and gap are goals in milliseconds.
func startRows(robots string, first, gap float64) []row {
	benchmark, name := "BenchmarkTalk/"+robots, robots+" robots at once: "
	const why = "espeak-ng synthesizes one sentence after the other, each in about 4 ms; " +
		"the simulated robots, which encode and decode as much as Perch, run on the same processors"
	return []row{
		{name + "first audio, p90", benchmark, "ms-speech-to-sound-p90", "ms", maximum, first, why},
		{name + "gap between packets, p99", benchmark, "ms-gap-p99", "ms", maximum, gap, why},
		{name + "packets late", benchmark, "times-dry", "", maximum, 0, why},
		{name + "turns without an answer", benchmark, "turns-unanswered", "", maximum, 0, ""},
	}
}

// endRows returns the rows for the end of turns of a group of BenchmarkEndOfTurn. cut is a goal in percent, wait one
// in milliseconds.
func endRows(group string, cut, wait float64) []row {
	benchmark := "BenchmarkEndOfTurn/rule=sentences/" + group
	const why = "half of the pauses follow a whole sentence, whose words do not tell whether the person goes on; only the voice could"
	return []row{
		{"end of turn, " + group + " sentences: cut off at a wait of 300 ms", benchmark, "%cut-at-300ms", "%", maximum, cut, why},
		{"end of turn, " + group + " sentences: wait if 5 % are cut off", benchmark, "ms-wait-at-5%-cut", "ms", maximum, wait, why},
		{"end of turn, " + group + " sentences: cut by pauses of 350 to 500 ms", benchmark, "%cut-at-350-to-500ms", "%", maximum, 0, ""},
	}
}

// talkCounts returns the numbers of simultaneous conversations in BenchmarkTalk.
func talkCounts() []int { return []int{1, 10, 50, 100, 200} }
