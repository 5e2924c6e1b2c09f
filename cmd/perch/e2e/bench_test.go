package e2e

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/voice"
	"perch/waittest"
)

// These benchmarks print the figures that make bench compares with goals. They run the program as a
// separate process, so that only the program is measured. make bench sets the environment variable
// PERCH_BINARY to the path of the binary that users run.

// start runs the measured program with its broker, and returns when the program serves.
func start(b *testing.B, data string, args ...string) *process {
	b.Helper()
	program, env := benchedProgram(b)
	p := begin(b, program, data, args, env...)
	p.up()
	return p
}

// benchedProgram returns the path of the measured program, and the environment variables that it needs.
func benchedProgram(b *testing.B) (path string, env []string) {
	if path = os.Getenv("PERCH_BINARY"); path == "" {
		path = perchBinary(b)
	}
	return path, []string{"PERCH_MQTT_LISTEN=127.0.0.1:0"}
}

// startScripted runs the binary of this test as an appliance with a scriptedRecognizer, and returns when it serves.
func startScripted(b *testing.B, data string) *process {
	b.Helper()
	p := begin(b, os.Args[0], data, nil, "PERCH_MQTT_LISTEN=127.0.0.1:0", asLoadTarget+"=1")
	p.up()
	return p
}

// heldMB returns a field of a process's smaps_rollup, in MB.
func heldMB(b *testing.B, pid int, field string) float64 {
	b.Helper()
	text := must.Value(os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)))(b)
	return float64(number(b, text, field)) / 1024
}

// cpu returns the CPU time that the process has used, without its children: the value of the clock that
// clock_getcpuclockid(3) returns.
func (p *process) cpu(b *testing.B) time.Duration {
	b.Helper()
	const ofAllThreads = 2
	var t syscall.Timespec
	clock := ^p.cmd.Process.Pid<<3 | ofAllThreads
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkStart measures the time from starting the program to its first response.
func BenchmarkStart(b *testing.B) {
	data := b.TempDir()
	start(b, data).stop() // the first start makes the secrets and the database
	var took time.Duration
	n := 0
	for b.Loop() {
		began := time.Now()
		a := start(b, data)
		answer := must.Value(http.Get(a.url + "/health"))(b)
		took += time.Since(began)
		n++
		b.StopTimer()
		_ = answer.Body.Close()
		a.stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(took.Microseconds())/float64(n)/1000, "ms/start")
}

// BenchmarkMemory measures the memory of an idle appliance, and with a loaded recognizer. If the program's file
// was just written, it is in the page cache in large pieces, and the kernel maps more of it than is used. The
// benchmark therefore evicts the file first, as after a boot, and also prints the figure without that.
func BenchmarkMemory(b *testing.B) {
	fresh := start(b, b.TempDir())
	time.Sleep(2 * time.Second)
	justBuilt := heldMB(b, fresh.cmd.Process.Pid, "Rss")
	fresh.stop()
	evict(b, fresh.cmd.Path)
	a := start(b, b.TempDir())
	defer a.stop()
	for b.Loop() {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(2 * time.Second)
	if file, err := os.Stat(a.cmd.Path); err == nil {
		b.ReportMetric(float64(file.Size())/1e6, "MB-file")
	}
	b.ReportMetric(justBuilt, "MB-resident-idle-just-built")
	b.ReportMetric(heldMB(b, a.cmd.Process.Pid, "Anonymous"), "MB-anonymous-idle")
	b.ReportMetric(heldMB(b, a.cmd.Process.Pid, "Rss"), "MB-resident-idle")
	say := appliancetest.Sentences(b, "what time is it")
	robot, err := simrobot.New(simrobot.Options{OTA: a.ota(), MAC: "A0:B1:C2:D3:E4:F5",
		Say: say})
	must.Succeed(b, err)
	must.Succeed(b, robot.Run(b.Context()))
	turn := robot.Stats().Turns[0]
	if turn.Transcript != "what time is it" {
		b.Errorf("heard %q", turn.Transcript)
	}
	b.ReportMetric(heldMB(b, a.cmd.Process.Pid, "Rss"), "MB-resident-recognizer")
	b.ReportMetric(float64(turn.FirstAudio.Milliseconds()), "ms-speech-to-sound")
}

// BenchmarkSpoken measures the time from the end of speech to the first packet of the answer, with the embedded
// recognizer, brain and voice. The robot does not report the end of speech; the appliance detects it.
func BenchmarkSpoken(b *testing.B) {
	a := start(b, b.TempDir())
	defer a.stop()
	measureSpoken(b, a, "what time is it", "what day is it", "what is your name", "who are you", "tell me a joke", "how are you",
		"where are my keys", "look left", "nod your head", "good morning")
}

// BenchmarkSpokenToModel is BenchmarkSpoken with a language model that takes 400 ms for its first sentence.
func BenchmarkSpokenToModel(b *testing.B) {
	p := appliancetest.NewPeers(b)
	p.Words, p.Every = []string{"😊", " It", " is", " three", " o'clock."}, 100*time.Millisecond
	configured, peers := appliancetest.Config(), appliancetest.Config()
	p.Use(&peers)
	configured.Brains = peers.Brains
	a := start(b, b.TempDir(), "--config", writtenConfig(b, configured))
	defer a.stop()
	measureSpoken(b, a, "what time is it", "what day is it", "what is your name", "tell me a joke", "how are you", "good morning")
}

// measureSpoken has a robot say each text, and reports how long it waited for the answers.
func measureSpoken(b *testing.B, a *process, texts ...string) {
	for b.Loop() {
		robot, err := simrobot.New(simrobot.Options{OTA: a.ota(), MAC: "A0:B1:C2:D3:E4:F5", Say: appliancetest.Sentences(b, texts...)})
		if err == nil {
			err = robot.Run(b.Context())
		}
		must.Succeed(b, err)
		var all []time.Duration
		wrong := 0
		for _, turn := range robot.Stats().Turns {
			if turn.Transcript != turn.Text {
				wrong++
				b.Logf("%q was heard as %q", turn.Text, turn.Transcript)
			}
			if turn.Answered {
				all = append(all, turn.FirstAudio)
			}
		}
		b.ReportMetric(float64(simrobot.Quantile(all, 0.5).Milliseconds()), "ms-speech-to-sound-p50")
		b.ReportMetric(float64(simrobot.Quantile(all, 0.9).Milliseconds()), "ms-speech-to-sound-p90")
		b.ReportMetric(float64(wrong), "wrong")
		b.ReportMetric(float64(len(texts)-len(all)), "unanswered")
	}
}

// evict removes a file from the kernel's page cache.
func evict(b *testing.B, path string) {
	b.Helper()
	if out, err := exec.Command("dd", "of="+path, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

const (
	loadRobots = 10                // not used
	loadText   = "what can you do" // what the robots of BenchmarkTalk say
)

// scriptedRecognizer returns loadText for every utterance.
type scriptedRecognizer struct{}

func (scriptedRecognizer) Name() string { return "scripted" }

func (scriptedRecognizer) Recognize(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	return voice.Transcript{Text: loadText}, u.Wait(ctx)
}

// asLoadTarget is the environment variable that makes the binary of this test run serveScripted.
const asLoadTarget = "RUN_WITH_SCRIPTED_RECOGNIZER"

// serveScripted runs an appliance with a scriptedRecognizer on the data directory in os.Args[3].
func serveScripted() {
	c := appliancetest.Config()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	o := appliancetest.Options(os.Args[3])
	o.Log, o.Recognizers = log, voice.Recognizers{scriptedRecognizer{}}
	a, err := appliance.New(&c, o)
	if err != nil {
		log.Error(err.Error())
		os.Exit(exitFailed)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err = a.Run(ctx)
	stop()
	a.Close()
	if err != nil {
		os.Exit(exitFailed)
	}
	os.Exit(exitDone)
}

// BenchmarkTalk makes robots talk at the same time, one turn each, and measures their waits and the CPU time of the
// appliance. The robots report the end of speech, as with a button, so that the appliance does not wait for silence.
func BenchmarkTalk(b *testing.B) {
	say := appliancetest.Sentences(b, loadText)
	for _, robots := range []int{1, 10, 50, 100, 200} {
		b.Run(fmt.Sprint(robots), func(b *testing.B) {
			a := startScripted(b, b.TempDir())
			defer a.stop()
			// The first robot makes the appliance synthesize its phrases. Its answer is the sound for pacedOpus.
			first, err := simrobot.New(simrobot.Options{OTA: a.ota(), MAC: "A0:B1:C2:D3:E5:00", Say: say, Record: true})
			if err == nil {
				err = first.Run(b.Context())
			}
			must.Succeed(b, err)
			_, answer := first.Sound()
			for b.Loop() {
				before := a.cpu(b)
				all := load(b, a.url, robots, say, func(_ int, o *simrobot.Options) { o.Mode = xiaozhi.Manual })
				report(b, all, a.cpu(b)-before, answer)
			}
		})
	}
}

// BenchmarkCrowd makes 100 robots speak at the same time to the embedded recognizer, and measures how long people wait
// after the end of their speech: until they hear something, which may be that the robot asks for a moment, and until
// their words are recognized. unrecognized is the number of people who are told that it took too long.
func BenchmarkCrowd(b *testing.B) {
	const text, robots = "what time is it", 100
	say := appliancetest.Sentences(b, text)
	a := start(b, b.TempDir())
	defer a.stop()
	load(b, a.url, 1, say, nil) // makes the appliance synthesize its phrases
	for b.Loop() {
		transcripts := make([]waittest.Buffer, robots)
		load(b, a.url, robots, say, func(i int, o *simrobot.Options) { o.Mode, o.Transcript = xiaozhi.Manual, &transcripts[i] })
		var sounds, words []time.Duration
		for i := range transcripts {
			sound, recognized := waits(b, transcripts[i].String())
			if sounds = append(sounds, sound...); len(sound) != 1 {
				b.Errorf("robot %d is answered %d times", i, len(sound))
			}
			words = append(words, recognized...)
		}
		for name, all := range map[string][]time.Duration{"sound": sounds, "words": words} {
			for quantile, q := range map[string]float64{"p50": 0.5, "p95": 0.95, "max": 1} {
				b.ReportMetric(float64(simrobot.Quantile(all, q).Milliseconds()), "ms-"+name+"-"+quantile)
			}
		}
		b.ReportMetric(float64(robots-len(words)), "unrecognized")
	}
}

func load(b *testing.B, url string, robots int, say []simrobot.Sentence, change func(int, *simrobot.Options)) []simrobot.Stats {
	all := make([]simrobot.Stats, robots)
	var wg sync.WaitGroup
	for i := range all {
		o := simrobot.Options{OTA: url + "/xiaozhi/ota/", MAC: fmt.Sprintf("A0:B1:C2:D3:E4:%02X", i), Say: say}
		if change != nil {
			change(i, &o)
		}
		robot := must.Value(simrobot.New(o))(b)
		wg.Go(func() {
			if err := robot.Run(b.Context()); err != nil && o.StopReadingAfter == 0 {
				b.Error(err)
			}
			all[i] = robot.Stats()
		})
	}
	wg.Wait()
	return all
}

func report(b *testing.B, all []simrobot.Stats, cpu time.Duration, answer []int16) {
	var gaps, hellos, firsts []time.Duration
	sent, received, lost, underruns, queue, silent := 0, 0, 0, 0, 0, 0
	for _, s := range all {
		gaps = append(gaps, s.Gaps...)
		hellos = append(hellos, s.HelloLatency)
		for _, t := range s.Turns {
			if firsts = append(firsts, t.FirstAudio); !t.Answered {
				silent++
			}
		}
		sent, received = sent+s.Sent, received+s.Received
		lost += s.Dropped + s.Ignored + s.Cut + s.Bad
		underruns += s.Underruns
		queue = max(queue, s.MaxQueue)
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(simrobot.Quantile(hellos, 1)), "ms-hello-max")
	b.ReportMetric(ms(simrobot.Quantile(firsts, 0.5)), "ms-speech-to-sound-p50")
	b.ReportMetric(ms(simrobot.Quantile(firsts, 0.9)), "ms-speech-to-sound-p90")
	b.ReportMetric(ms(simrobot.Quantile(firsts, 1)), "ms-speech-to-sound-max")
	b.ReportMetric(ms(simrobot.Quantile(gaps, 0.5)), "ms-gap-p50")
	b.ReportMetric(ms(simrobot.Quantile(gaps, 0.99)), "ms-gap-p99")
	b.ReportMetric(float64(queue*60), "ms-lead-max")
	b.ReportMetric(float64(received), "packets")
	b.ReportMetric(float64(underruns), "times-dry")
	b.ReportMetric(float64(lost), "packets-lost")
	b.ReportMetric(float64(silent), "turns-unanswered")
	robots := len(all)
	bare := pacedOpus(b, answer, robots, sent/robots, received/robots)
	speech := float64(received/robots) * voice.FrameDuration.Seconds()
	b.ReportMetric(cpu.Seconds()/speech, "cores")
	b.ReportMetric(bare.Seconds()/speech, "cores-bare")
	b.ReportMetric(cpu.Seconds()/bare.Seconds(), "x-bare-opus-cpu")
}

// pacedFor is the maximum duration of the measurement in pacedOpus. The result for longer streams is extrapolated.
const pacedFor = 8 * time.Second

// pacedOpus returns the CPU time that libopus alone needs for talking robots: each of streams decodes a number of
// packets, and then encodes a number of packets, one every 60 ms. The streams start at different times.
func pacedOpus(b *testing.B, sound []int16, streams, decode, encode int) time.Duration {
	b.Helper()
	packets := microphone(b)
	share := min(1, pacedFor.Seconds()/(float64(decode+encode)*voice.FrameDuration.Seconds()))
	var all sync.WaitGroup
	before := ownCPU(b)
	for i := range streams {
		decoder := must.Value(voice.NewDecoder(voice.MicRate))(b)
		speaker := must.Value(voice.NewEncoder(voice.SpeakerRate))(b)
		all.Go(func() {
			time.Sleep(time.Duration(i) * voice.FrameDuration / time.Duration(streams))
			tick := time.NewTicker(voice.FrameDuration)
			defer tick.Stop()
			for n := range int(share * float64(decode)) {
				<-tick.C
				if _, err := decoder.Decode(packets[n%len(packets)]); err != nil {
					b.Error(err)
				}
			}
			for n := range int(share * float64(encode)) {
				<-tick.C
				at := n * voice.SpeakerFrame % (len(sound) - voice.SpeakerFrame)
				if err := speaker.Encode(sound[at:at+voice.SpeakerFrame], func([]byte) error { return nil }); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	return time.Duration(float64(ownCPU(b)-before) / share)
}

// microphone returns loadText as the Opus packets of a robot.
func microphone(b *testing.B) (packets [][]byte) {
	b.Helper()
	mic, err := voice.NewMicEncoder()
	if err == nil {
		err = mic.Encode(appliancetest.Sentences(b, loadText)[0].PCM, func(p []byte) error { packets = append(packets, bytes.Clone(p)); return nil })
	}
	must.Succeed(b, err)
	return packets
}

func ownCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	must.Succeed(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
