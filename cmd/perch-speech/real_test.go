package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"perch/cmd/perch-speech/models"
	"perch/must"
	"perch/voice"
	"perch/voice/sherpa"
	"perch/voice/wyoming"
)

// TestRealModels lets a voice speak a sentence and a recognizer write it, through Perch's Wyoming client, and kills the
// engines during an utterance. make test-speech downloads the models.
func TestRealModels(t *testing.T) {
	dir := realModels(t)
	address, _ := start(t, dir)
	engine, err := wyoming.New(wyoming.Options{Address: "tcp://" + address, AnswerWithin: 3 * time.Minute})
	must.Succeed(t, err)
	const text = "What time is it in Tokyo?"
	var said []int16
	began := time.Now()
	must.Succeed(t, engine.Synthesize(t.Context(), text, voice.Options{Language: "en"}, func(pcm []int16) error {
		said = append(said, pcm...)
		return nil
	}))
	sound := time.Duration(len(said)) * time.Second / voice.SpeakerRate
	t.Logf("loading the voice and speaking for %s took %s", sound.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	if sound < time.Second || sound > 5*time.Second {
		t.Errorf("the sound lasts %s", sound)
	}
	pcm := voice.NewResampler(voice.SpeakerRate, voice.MicRate).Resample(said)
	begin := func() *voice.Utterance {
		u := voice.NewUtterance()
		u.Write(pcm)
		return u
	}
	write := func(u *voice.Utterance) (string, error) {
		u.Finish()
		t.Helper()
		began := time.Now()
		written, err := engine.Recognize(t.Context(), u, voice.Options{Language: "en"})
		t.Logf("it heard %q after %s (%v)", written.Text, time.Since(began).Round(time.Millisecond), err)
		return written.Text, err
	}
	written, err := write(begin())
	must.Succeed(t, err)
	if wrong := voice.WordErrors(wordsOf(text), wordsOf(written)); wrong > 1 {
		t.Errorf("%d words are wrong", wrong)
	}

	// Kill the engines after another client has begun to send an utterance.
	conn, err := net.Dial("tcp", address)
	must.Succeed(t, err)
	defer conn.Close()
	must.Succeed(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	for _, name := range []string{wyoming.TypeAudioStart, wyoming.TypeAudioChunk, wyoming.TypePing} {
		e := must.Value(wyoming.NewEvent(name, wyoming.Format{Rate: voice.MicRate, Width: 2, Channels: 1}, make([]byte, 3200)))(t)
		must.Succeed(t, wyoming.NewWriter(conn).Write(e))
	}
	r := wyoming.NewReader(conn, wyoming.Limits{})
	if pong, err := r.Read(); pong.Type != wyoming.TypePong {
		t.Fatalf("%s %s instead of a pong (%v)", pong.Type, pong.Data, err)
	}
	must.Succeed(t, syscall.Kill(children(t)[0], syscall.SIGKILL))
	if e, err := r.Read(); err == nil {
		t.Errorf("the killed engines answer with %s %s", e.Type, e.Data)
	}
	again, err := write(begin())
	must.Succeed(t, err)
	if again != written {
		t.Errorf("afterwards it hears %q", again)
	}
}

// realModels returns the folder of models that were downloaded for these tests. It skips the test if models are
// missing.
func realModels(t *testing.T) (dir string) {
	t.Helper()
	if dir = os.Getenv("PERCH_SPEECH_MODELS"); dir == "" {
		t.Skip("real models are tried by make test-speech")
	}
	jobs := map[string]bool{}
	for _, m := range must.Value(models.Folder(dir).List())(t) {
		must.Succeed(t, m.Verify())
		jobs[m.Job] = true
	}
	if len(jobs) < 4 {
		t.Skipf("%s has models for %v alone; without the packages of packaging/speech.sh nothing can be tried", dir, jobs)
	}
	return dir
}

// TestRealDetector checks that the detector distinguishes speech from silence and noise.
func TestRealDetector(t *testing.T) {
	dir := realModels(t)
	d, err := sherpa.NewDetector(filepath.Join(dir, "silero-vad", "silero_vad.onnx"))
	must.Succeed(t, err)
	defer d.Close()
	speaking := espeak(t)
	for name, sound := range map[string]func(i int) int16{
		"silence": func(int) int16 { return 0 },
		"a hum":   func(i int) int16 { return int16(i % 320 * 20) },
		"hiss":    func(i int) int16 { return int16(i*i*7919) >> 5 },
		"speech":  func(i int) int16 { return speaking[i%len(speaking)] },
	} {
		u, pcm := voice.NewUtterance(), make([]int16, 2*voice.MicRate)
		for i := range pcm {
			pcm[i] = sound(i)
		}
		u.Write(pcm)
		u.Finish()
		for range 2 { // the second result must not depend on the first call
			if speaks, err := d.HasSpeech(t.Context(), u); err != nil || speaks != (name == "speech") {
				t.Errorf("%s is speech: %v (%v)", name, speaks, err)
			}
		}
	}
}

// espeak returns a sentence spoken by espeak-ng, in samples at voice.MicRate.
func espeak(t *testing.T) []int16 {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "espeak-ng", "--stdout", "What time is it in Tokyo?").Output()
	must.Succeed(t, err)
	r, err := voice.NewWAVReader(bytes.NewReader(out))
	must.Succeed(t, err)
	pcm, err := r.ReadAll(voice.MicRate)
	must.Succeed(t, err)
	return pcm
}

// TestRealJudge checks the model for the end of turns through Perch's Wyoming client.
func TestRealJudge(t *testing.T) {
	dir := realModels(t)
	address, _ := start(t, dir)
	engine, err := wyoming.New(wyoming.Options{Address: "tcp://" + address, AnswerWithin: 3 * time.Minute})
	must.Succeed(t, err)
	judge := func(pcm []int16) float64 {
		u := voice.NewUtterance()
		u.Write(pcm)
		u.Finish()
		began := time.Now()
		p := must.Value(engine.JudgeEnd(t.Context(), u))(t)
		t.Logf("%.5f after %s", p, time.Since(began).Round(time.Millisecond))
		return p
	}
	silence := make([]int16, voice.MicRate/4)
	for text, finished := range map[string]bool{
		"Turn the lights blue, or maybe green.": true, "I went to the market this morning, and bought some apples.": true,
		"the train was late and": false, "what should I um": false,
	} {
		var said []int16
		must.Succeed(t, engine.Synthesize(t.Context(), text, voice.Options{Language: "en"}, func(pcm []int16) error {
			said = append(said, pcm...)
			return nil
		}))
		pcm := voice.NewResampler(voice.SpeakerRate, voice.MicRate).Resample(said)
		if p := judge(slices.Concat(silence, pcm, silence)); (p > 0.5) != finished {
			t.Errorf("%q is finished with the probability %.2f", text, p)
		}
	}
}
