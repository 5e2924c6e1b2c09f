// Package sherpa recognizes speech with Moonshine models, synthesizes speech with Piper voices, and detects speech with
// Silero's voice detector. It uses the library sherpa-onnx, and also ONNX Runtime, on which that is built, to tell with
// Smart Turn when a person has finished.
//
// sherpa-onnx ends the process if it cannot use a file, so a program that loads the owner's models must expect to be
// restarted. Only perch-speech may import this package, because the library and ONNX Runtime have 32 MB.
package sherpa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	sherpa "github.com/k2-fsa/sherpa-onnx-go-linux"

	"perch/voice"
)

// slot is a lock of capacity 1. It lets a model process one call at a time.
type slot chan struct{}

// acquire waits for the lock. It returns ctx's error if ctx ends. The caller must call release even after an error.
func (s slot) acquire(ctx context.Context) (release func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, ctx.Err()
	case <-ctx.Done():
		return func() {}, ctx.Err()
	}
}

// Recognizer is a Moonshine model. It is safe for concurrent use.
type Recognizer struct {
	free  slot
	model *sherpa.OfflineRecognizer
}

// NewRecognizer loads the model in the files encoder, decoder and tokens. threads is the number of CPU threads. Close frees
// the model.
func NewRecognizer(encoder, decoder, tokens string, threads int) (*Recognizer, error) {
	var c sherpa.OfflineRecognizerConfig
	c.FeatConfig = sherpa.FeatureConfig{SampleRate: voice.MicRate, FeatureDim: 80}
	c.ModelConfig.Moonshine.Encoder, c.ModelConfig.Moonshine.MergedDecoder = encoder, decoder
	c.ModelConfig.Tokens, c.ModelConfig.NumThreads = tokens, threads
	model := sherpa.NewOfflineRecognizer(&c)
	if model == nil {
		return nil, fmt.Errorf("sherpa-onnx cannot load %s", encoder)
	}
	return &Recognizer{make(slot, 1), model}, nil
}

// Name returns "sherpa".
func (*Recognizer) Name() string { return "sherpa" }

// Close frees the model. No call may be running.
func (r *Recognizer) Close() { sherpa.DeleteOfflineRecognizer(r.model) }

// Recognize implements voice.Recognizer. It starts when the utterance is finished.
func (r *Recognizer) Recognize(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	pcm, err := soundOf(ctx, u)
	if err != nil {
		return voice.Transcript{}, err
	}
	release, err := r.free.acquire(ctx)
	defer release()
	if err != nil {
		return voice.Transcript{}, err
	}
	var text string
	for _, piece := range split(pcm) {
		if err := ctx.Err(); err != nil {
			return voice.Transcript{}, err
		}
		text += " " + r.decode(piece)
	}
	return voice.CleanTranscript(text), nil
}

// decode returns the text of a piece of an utterance.
func (r *Recognizer) decode(pcm []int16) string {
	stream := sherpa.NewOfflineStream(r.model)
	defer sherpa.DeleteOfflineStream(stream)
	stream.AcceptWaveform(voice.MicRate, floats(pcm))
	r.model.Decode(stream)
	return stream.GetResult().Text
}

// Detector is Silero's voice detector. It is safe for concurrent use.
type Detector struct {
	free  slot
	model *sherpa.VoiceActivityDetector
}

// detectorWindow is the number of samples that the detector processes at once.
const detectorWindow = 512

// NewDetector loads the detector's model from a file. Close frees the model.
func NewDetector(file string) (*Detector, error) {
	c := sherpa.VadModelConfig{SampleRate: voice.MicRate, NumThreads: 1, SileroVad: sherpa.SileroVadModelConfig{Model: file, Threshold: 0.5,
		MinSilenceDuration: 0.25, MinSpeechDuration: 0.1, MaxSpeechDuration: float32(voice.MaxUtterance.Seconds()), WindowSize: detectorWindow}}
	model := sherpa.NewVoiceActivityDetector(&c, float32(2*voice.MaxUtterance.Seconds()))
	if model == nil {
		return nil, fmt.Errorf("sherpa-onnx cannot load %s", file)
	}
	return &Detector{make(slot, 1), model}, nil
}

// Close frees the model. No call may be running.
func (d *Detector) Close() { sherpa.DeleteVoiceActivityDetector(d.model) }

// HasSpeech waits until the utterance is finished, and reports whether somebody speaks in it.
func (d *Detector) HasSpeech(ctx context.Context, u *voice.Utterance) (bool, error) {
	pcm, err := soundOf(ctx, u)
	if err != nil {
		return false, err
	}
	release, err := d.free.acquire(ctx)
	defer release()
	if err != nil {
		return false, err
	}
	d.model.Reset()
	d.model.Clear()
	for window := range slices.Chunk(floats(pcm), detectorWindow) {
		d.model.AcceptWaveform(window)
	}
	d.model.Flush()
	return !d.model.IsEmpty(), nil
}

// soundOf waits until an utterance is finished, and returns its sound.
func soundOf(ctx context.Context, u *voice.Utterance) ([]int16, error) {
	if err := u.Wait(ctx); err != nil {
		return nil, err
	}
	pcm := make([]int16, int(u.Duration()*voice.MicRate/time.Second))
	_, err := u.Read(ctx, pcm, 0)
	return pcm, err
}

// floats converts samples to numbers between -1 and 1.
func floats(pcm []int16) []float32 {
	samples := make([]float32, len(pcm))
	for i, s := range pcm {
		samples[i] = float32(s) / 32768
	}
	return samples
}

// Synthesizer is a voice of Piper. It is safe for concurrent use.
type Synthesizer struct {
	free slot
	tts  *sherpa.OfflineTts
	rate int
}

// VoiceFiles are the files and settings of a voice.
type VoiceFiles struct {
	Model, Tokens string  // paths
	Espeak        string  // folder of espeak-ng's data
	Noise, NoiseW float32 // variation of the sound, and of the length of phonemes
	Length        float32 // factor of the duration: with a greater value the speech is slower
}

// NewSynthesizer loads a voice. threads is the number of CPU threads. Close frees the voice.
func NewSynthesizer(f VoiceFiles, threads int) (*Synthesizer, error) {
	var c sherpa.OfflineTtsConfig
	c.Model.Vits = sherpa.OfflineTtsVitsModelConfig{Model: f.Model, Tokens: f.Tokens, DataDir: f.Espeak,
		NoiseScale: f.Noise, NoiseScaleW: f.NoiseW, LengthScale: f.Length}
	c.Model.NumThreads, c.MaxNumSentences = threads, 1
	tts := sherpa.NewOfflineTts(&c)
	if tts == nil {
		return nil, fmt.Errorf("sherpa-onnx cannot load %s", f.Model)
	}
	s := &Synthesizer{make(slot, 1), tts, tts.SampleRate()}
	if !voice.Playable(s.rate) {
		s.Close()
		return nil, fmt.Errorf("the voice %s has %d samples a second, which cannot be played", f.Model, s.rate)
	}
	return s, nil
}

// Name returns "sherpa".
func (*Synthesizer) Name() string { return "sherpa" }

// Close frees the voice. No call may be running.
func (s *Synthesizer) Close() { sherpa.DeleteOfflineTts(s.tts) }

// Synthesize implements voice.Synthesizer. It passes the sound of each sentence to out as soon as the sentence is
// synthesized. It ignores the options.
func (s *Synthesizer) Synthesize(ctx context.Context, text string, _ voice.Options, out func([]int16) error) error {
	release, err := s.free.acquire(ctx)
	defer release()
	if err != nil {
		return err
	}
	converter := voice.NewConverter(voice.MaxSpeech(text), nil, out)
	converter.SetRate(s.rate)
	var failure error
	// The result is ignored: it is the same sound that the function has received.
	s.tts.GenerateWithCallback(text, 0, 1, func(samples []float32) bool {
		if failure = ctx.Err(); failure == nil {
			failure = converter.Convert(pcmOf(samples))
		}
		return failure == nil
	})
	if failure == nil && !converter.Sounded() {
		failure = fmt.Errorf("%w: the voice made no sound of it", voice.ErrText)
	}
	if errors.Is(failure, voice.ErrEndless) {
		return fmt.Errorf("%w: the voice does not stop speaking", voice.ErrUnavailable)
	}
	return failure
}

// pcmOf converts samples between -1 and 1 to 16 bits.
func pcmOf(samples []float32) []int16 {
	pcm := make([]int16, len(samples))
	for i, s := range samples {
		pcm[i] = int16(min(max(s, -1), 1) * 32767)
	}
	return pcm
}
