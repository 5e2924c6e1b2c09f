package program_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/voice"
	"perch/voice/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// header is a shell command that prints the header of a 24 kHz WAV stream of unknown length.
const header = `printf 'RIFF\377\377\377\377WAVEfmt \020\0\0\0\001\0\001\0\300\135\0\0\200\273\0\0\002\0\020\0data\377\377\377\377'; `

func shell(script, text string) program.Call {
	return program.Call{Name: "talker", Command: []string{"/bin/sh", "-c", script}, Text: text}
}

func TestSoundIsPassedOn(t *testing.T) {
	samples := 0
	err := shell(header+"cat", strings.Repeat("ab", 5000)).Speak(t.Context(), func(pcm []int16) error {
		samples += len(pcm)
		return nil
	})
	if err != nil || samples < 4900 || samples > 5000 {
		t.Errorf("%d samples of 5000, %v", samples, err)
	}
}

// TestASpeakingProgramGetsNoTokens checks that the program's environment contains neither Perch's keys
// nor the token of Home Assistant's Supervisor.
func TestASpeakingProgramGetsNoTokens(t *testing.T) {
	for _, name := range []string{"PERCH_SPEECH_KEY", "SUPERVISOR_TOKEN", "HASSIO_TOKEN"} {
		t.Setenv(name, "canary")
	}
	err := shell("env | grep -e canary -e ^PATH= | cut -c1-40 >&2; exit 1", "hi").Speak(t.Context(), func([]int16) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "PATH=") || strings.Contains(err.Error(), "canary") {
		t.Errorf("its environment is %v", err)
	}
}

// TestProgramThatDoesNotStop checks that a program that writes endless sound is killed, and that a
// program is killed if out fails.
func TestProgramThatDoesNotStop(t *testing.T) {
	samples := 0
	count := func(pcm []int16) error { samples += len(pcm); return nil }
	most := int(voice.MaxSpeech("hi") * voice.SpeakerRate / time.Second)
	if err := shell(header+"cat /dev/zero", "hi").Speak(t.Context(), count); !errors.Is(err, voice.ErrEndless) || samples != most {
		t.Errorf("%d samples of %d, %v", samples, most, err)
	}
	stop := errors.New("stop")
	if err := shell(header+"cat /dev/zero", "hi").Speak(t.Context(), func([]int16) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("not listened to: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := shell(header+"head -c 100000 /dev/zero; exec sleep 60", "hi").Speak(ctx, func([]int16) error { cancel(); return nil }); err == nil {
		t.Error("cancelled, it says that all was spoken")
	}
}

// TestSilentProgram checks that a program that makes no sound in time is killed, and that the error says so.
func TestSilentProgram(t *testing.T) {
	for script, want := range map[string]string{
		"exec sleep 60":                   "talker: it made no sound for 50ms",
		header + "exec sleep 60":          "talker: it made no sound for 50ms",
		"echo loading >&2; exec sleep 60": "talker: loading: it made no sound for 50ms",
	} {
		err := shell(script, "hi").SpeakWithin(t.Context(), 50*time.Millisecond, func([]int16) error { return nil })
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v", script, err)
		}
	}
}

// TestFaults checks that errors contain the beginning of the program's standard error.
func TestFaults(t *testing.T) {
	for script, want := range map[string]string{
		"echo no such voice >&2; exit 1":            "talker: no such voice: ",
		"yes noise | head -c 100000 >&2; exit 3":    "talker: noise",
		header + "head -c 1000 /dev/zero; exit 3":   "talker: exit status 3",
		"echo this is no sound":                     "read its sound: ",
		header + "echo cracked >&2; kill -SEGV $$":  "talker: cracked: signal: segmentation fault",
		"printf '\\377\\376 broken\\n' >&2; exit 1": "talker: broken: ",
	} {
		err := shell(script, "hi").Speak(t.Context(), func([]int16) error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), want) || len(err.Error()) > 1200 || errors.Is(err, voice.ErrUnavailable) {
			t.Errorf("%q: %v", script, err)
		}
	}
	err := program.Call{Name: "talker", Command: []string{"/no/such/program"}}.Speak(t.Context(), nil)
	if !errors.Is(err, voice.ErrUnavailable) {
		t.Errorf("no program: %v", err)
	}
}
