package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/voice"
	"perch/voice/sounds"
)

// commandsSpoken lists sentences of the reflex brain, at least one of each form.
var commandsSpoken = []string{
	"what time is it", "what is the time", "tell me the time", "what day is it", "what day is it today", "what is the date",
	"tell me the date", "what is your name", "who are you", "help me please", "what can you do",
	"set the volume to forty percent", "set the volume to seventy five", "set the volume to ten percent", "volume eighty percent",
	"turn the volume up", "turn down the volume", "speak louder please", "speak more quietly",
	"set the brightness to thirty percent", "brightness ninety percent",
	"look left", "look to the right", "turn your head to the left", "look up", "look down", "look straight ahead", "look at me",
	"nod your head", "please nod", "shake your head", "turn the lights blue", "set the lights to green", "turn the lights off",
	"turn off the lights", "remember that my keys are in the kitchen", "remember my glasses are on the table",
	"remember that my umbrella is behind the sofa", "where are my keys", "where is my phone", "do you know where my passport is",
	"remember that anna is my sister", "remember oliver is my neighbor", "who is anna", "who is thomas",
	"how are you", "how are you today", "how do you feel", "i love you", "i like you very much", "tell me a joke", "make me laugh",
	"surprise me", "you are a good robot", "good morning", "thank you very much", "reboot yourself", "restart yourself",
	"stop talking", "that is all thank you", "goodbye", "good night", "go to sleep",
	"take a photo", "what do you see", "set a timer for five minutes", "set a timer for one hour", "how much time is left",
	"cancel the timer", "remind me in twenty minutes to take the medicine", "remind me in one hour to feed the cat",
}

// othersSpoken lists sentences that are not sentences of the reflex brain. The first ones are similar to commands.
var othersSpoken = []string{
	"what time is lunch", "what is the matter with you", "set the table for four people", "set the volume of the television",
	"turn off the television", "turn the page", "look at this picture", "look for my sister", "where are my parents",
	"where is the train station", "remember to buy some milk", "remember that the meeting is at noon", "tell me a story about dragons",
	"how are your parents doing", "i love chocolate", "who is the president of france", "good idea let us go", "the lights are on",
	"you are late again", "stop the car here", "go to the shop", "shake the bottle before use", "nod if you understand me",
	"i like eating apples very much", "can you please bring me the newspaper", "we should leave before it gets dark",
	"the weather will be nice tomorrow afternoon", "my brother works in a bank", "did you feed the cat this morning",
	"there is nothing on television tonight", "please close the window it is cold", "she bought a new bicycle last week",
	"the game ended two to one", "call me when you get home", "i have to finish my homework",
	"a", "yes", "no", "what", "hm", "banana",
}

// say returns the sound of a sentence, at the rate of a microphone. voiceName is a voice of flite, "espeak" for
// espeak-ng, or "joe" for recordings of a piper voice in testdata/joe.
func say(ctx context.Context, voiceName, text string) ([]int16, error) {
	switch voiceName {
	case "joe":
		pcm, err := sounds.Open("testdata/joe").Load(ctx, strings.ReplaceAll(text, " ", "-"))
		return voice.NewResampler(voice.SpeakerRate, voice.MicRate).Resample(pcm), err
	case "espeak":
		return soundOf(exec.CommandContext(ctx, "espeak-ng", "-v", "en-us", "-s", "150", "--stdout", text))
	}
	return simrobot.Speak(ctx, text, voiceName)
}

// soundOf returns the sound of the WAV file that a command writes to its output, at the rate of a microphone.
func soundOf(command *exec.Cmd) ([]int16, error) {
	wav, err := command.Output()
	if err != nil {
		return nil, err
	}
	w, err := voice.NewWAVReader(bytes.NewReader(wav))
	if err != nil {
		return nil, err
	}
	return w.ReadAll(voice.MicRate)
}

// asARobotSendsIt returns a spoken sentence as an utterance of a robot: with noise and silence, and encoded with
// Opus and decoded.
func asARobotSendsIt(t testing.TB, voiceName, text string) *voice.Utterance {
	t.Helper()
	speech, err := say(t.Context(), voiceName, text)
	if err != nil {
		t.Error(err)
		u := voice.NewUtterance()
		u.Finish()
		return u
	}
	const before, after = voice.MicRate / 2, voice.MicRate * 6 / 10
	heard, err := throughOpus(slices.Concat(make([]int16, before), speech, make([]int16, after)), len(text))
	if err != nil {
		t.Error(err)
	}
	u := voice.NewUtterance()
	u.Write(heard)
	u.Finish()
	return u
}

// throughOpus returns a sound with noise added, encoded with Opus and decoded. It changes pcm.
func throughOpus(pcm []int16, seed int) (heard []int16, err error) {
	r := rand.New(rand.NewPCG(1, uint64(seed)))
	for i := range pcm {
		pcm[i] += int16(r.NormFloat64() * 12)
	}
	encoder, err := voice.NewMicEncoder()
	decoder, err2 := voice.NewDecoder(voice.MicRate)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	err = encoder.Encode(pcm, func(packet []byte) error {
		decoded, err := decoder.Decode(packet)
		heard = append(heard, decoded...)
		return err
	})
	return heard, err
}

// TestWhatIsUnderstood measures how well the embedded recognizer understands commandsSpoken and refuses
// othersSpoken, in voices of three programs. The voice of espeak-ng has no minimum of understood commands.
func TestWhatIsUnderstood(t *testing.T) {
	if testing.Short() {
		t.Skip("recognition takes minutes, in make test-all")
	}
	c := config.Default()
	e := must.Value(New(nil, &c, drivers.Brain{}, nil, nil, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(e.Close)
	voices := []string{"slt", "awb", "joe", "espeak"}
	var mu sync.Mutex
	exact, accepted, errors, words := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	var wg sync.WaitGroup // the engine has two pairs of decoders
	for _, name := range voices {
		wg.Go(func() {
			for _, text := range append(slices.Clone(commandsSpoken), othersSpoken...) {
				got, err := e.Recognizers.Recognize(t.Context(), asARobotSendsIt(t, name, text), voice.Options{Language: "en", Patient: true})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				command := slices.Contains(commandsSpoken, text)
				if said := strings.Fields(text); command {
					errors[name], words[name] = errors[name]+voice.WordErrors(said, strings.Fields(got.Text)), words[name]+len(said)
				}
				switch {
				case command && got.Text == text:
					exact[name]++
				case command:
					t.Logf("%s: %q was understood as %q", name, text, got.Text)
				case !got.Refused:
					accepted[name]++
					t.Logf("%s: %q was taken for %q", name, text, got.Text)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	rightAll, wrongAll := 0, 0
	for _, name := range voices {
		rightAll, wrongAll = rightAll+exact[name], wrongAll+accepted[name]
		fmt.Printf("recognizer, voice %s: %d of %d commands exact, %.1f %% word errors, %d of %d others accepted\n",
			name, exact[name], len(commandsSpoken), percent(errors[name], words[name]), accepted[name], len(othersSpoken))
		if least := map[string]float64{"slt": 95, "awb": 95, "joe": 95}[name]; percent(exact[name], len(commandsSpoken)) < least {
			t.Errorf("voice %s: fewer than %.0f %% of the commands were understood exactly", name, least)
		}
		if percent(accepted[name], len(othersSpoken)) > 10 {
			t.Errorf("voice %s: more than 10 %% of what is no command was accepted", name)
		}
	}
	commands, others := len(voices)*len(commandsSpoken), len(voices)*len(othersSpoken)
	fmt.Printf("recognizer, all voices: %.1f %% of %d commands exact, %.1f %% of %d others accepted\n",
		percent(rightAll, commands), commands, percent(wrongAll, others), others)
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(of) }
