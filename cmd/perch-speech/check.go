package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"perch/cmd/perch-speech/models"
	"perch/voice"
	"perch/voice/wyoming"
)

// sentences are the lines of text that perch-speech models check lets a voice speak and a recognizer write.
const sentences = `What time is it in Tokyo?
Turn the light in the kitchen on.
Please remember that my keys are in the drawer.
Set a timer for twenty five minutes.
Look to the left, and then up to me.
How warm is it going to be tomorrow?
Tell me a short story about a bird.
Is the door of the garage open?`

// checkTimeout is how long a model may take to be loaded and to answer.
const checkTimeout = 2 * time.Minute

func checkCommand() *cobra.Command {
	var flags modelFlags
	return flags.registerAll(&cobra.Command{
		Use:   "check",
		Short: "Speak with every voice and let every recognizer write it",
		Long: `It compares the files with the catalogue, and then lets every voice say eight sentences, and every recognizer of its language write them.
It prints how many words in a hundred were wrong, and how long a second of sound takes on this machine: above 1, people wait.`,
		Example: "perch-speech models check --threads 2",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := flags.models().List()
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(list, func(m models.Installed) bool { return m.Job == models.Hears || m.Job == models.Speaks }) {
				return fmt.Errorf("there is no model that hears or speaks in %s; perch-speech models list shows the models, and perch-speech models get NAME gets one", flags.models())
			}
			for _, m := range list {
				if err := m.Verify(); err != nil {
					return err
				}
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return fmt.Errorf("listen: %w", err)
			}
			defer l.Close()
			ctx, cancel := context.WithCancel(c.Context())
			s := supervisor{folder: flags.models(), threads: flags.threads, listener: l.(*net.TCPListener), stderr: c.ErrOrStderr(), log: newLog(c), offersSlow: true}
			var supervising sync.WaitGroup
			defer supervising.Wait()
			defer cancel()
			supervising.Go(func() { s.run(ctx) })
			return check(ctx, "tcp://"+l.Addr().String(), list, c.OutOrStdout())
		},
	})
}

// check lets every voice in the list speak and every recognizer of its language write, and prints the results. address
// is the URL of the Wyoming server that runs the models. check continues after an error, and returns all errors.
func check(ctx context.Context, address string, list []models.Installed, out io.Writer) (failed error) {
	heard := map[string]bool{}
	for _, m := range list {
		if m.Job != models.Speaks {
			continue
		}
		said, took, err := synthesize(ctx, address, m)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", m.Name, err))
			continue
		}
		fmt.Fprintf(out, "%s speaks: %s\n", m.Name, pace(took, duration(said, voice.SpeakerRate)))
		for _, r := range list {
			if r.Job != models.Hears || voice.BaseLanguage(r.Language) != voice.BaseLanguage(m.Language) {
				continue
			}
			heard[r.Name] = true
			if err := write(ctx, address, r, m, said, out); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", r.Name, err))
			}
		}
	}
	for _, r := range list {
		if r.Job == models.Hears && !heard[r.Name] {
			fmt.Fprintf(out, "%s hears: not checked, because no voice that works speaks %s\n", r.Name, r.Language)
		}
	}
	return failed
}

// synthesize returns the sound of each sentence, spoken by a voice, in samples at voice.SpeakerRate. took is the time
// for all sentences, without the time to load the voice.
func synthesize(ctx context.Context, address string, m models.Installed) (said [][]int16, took time.Duration, err error) {
	engine, err := wyoming.New(wyoming.Options{Address: address, Voice: m.Name, AnswerWithin: checkTimeout})
	if err != nil {
		return nil, 0, err
	}
	speak := func(text string) (pcm []int16, err error) {
		err = engine.Synthesize(ctx, text, voice.Options{}, func(piece []int16) error {
			pcm = append(pcm, piece...)
			return nil
		})
		return pcm, err
	}
	if _, err := speak("Hello."); err != nil { // loads the voice
		return nil, 0, err
	}
	began := time.Now()
	for text := range strings.Lines(sentences) {
		pcm, err := speak(strings.TrimSpace(text))
		if err != nil {
			return nil, 0, err
		}
		said = append(said, pcm)
	}
	return said, time.Since(began), nil
}

// write lets the recognizer r write the sounds in said, which the voice speaker has spoken, and prints the number of
// wrong words and the time.
func write(ctx context.Context, address string, r, speaker models.Installed, said [][]int16, out io.Writer) error {
	engine, err := wyoming.New(wyoming.Options{Address: address, Model: r.Name, AnswerWithin: checkTimeout})
	if err != nil {
		return err
	}
	recognize := func(pcm []int16) (string, error) {
		u := voice.NewUtterance()
		u.Write(voice.NewResampler(voice.SpeakerRate, voice.MicRate).Resample(pcm))
		u.Finish()
		t, err := engine.Recognize(ctx, u, voice.Options{})
		return t.Text, err
	}
	if _, err := recognize(said[0]); err != nil { // loads the model
		return err
	}
	began, wrong, words := time.Now(), 0, 0
	for i, text := range strings.Split(sentences, "\n") {
		written, err := recognize(said[i])
		if err != nil {
			return err
		}
		wrong += voice.WordErrors(wordsOf(text), wordsOf(written))
		words += len(wordsOf(text))
	}
	fmt.Fprintf(out, "%s hears %s: %d of %d words wrong (%.1f %%), %s\n", r.Name, speaker.Name, wrong, words,
		100*float64(wrong)/float64(words), pace(time.Since(began), duration(said, voice.SpeakerRate)))
	return nil
}

// duration returns the total duration of sounds with rate samples per second.
func duration(sounds [][]int16, rate int) (d time.Duration) {
	for _, pcm := range sounds {
		d += time.Duration(len(pcm)) * time.Second / time.Duration(rate)
	}
	return d
}

// pace returns, as text, the time that a model took for each second of sound.
func pace(took, sound time.Duration) string {
	return fmt.Sprintf("%.2f s for each of %.0f s of sound", took.Seconds()/sound.Seconds(), sound.Seconds())
}

// wordsOf returns the words of a text in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' })
}
