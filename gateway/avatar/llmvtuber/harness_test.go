package llmvtuber

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/gateway/avatar/avatartest"
	"perch/gateway/avatar/feed"
	"perch/socket"
	"perch/voice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// says returns a script with replies.
func says(replies ...agent.Reply) func(context.Context, string, func(agent.Reply) error) error {
	return func(_ context.Context, _ string, take func(agent.Reply) error) error {
		for _, r := range replies {
			if err := take(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// forever is a script that speaks until it is interrupted.
func forever(ctx context.Context, _ string, take func(agent.Reply) error) error {
	for ctx.Err() == nil {
		if err := take(agent.Say{Text: "And another."}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// recognizer is a scripted recognizer.
type recognizer func(pcm []int16) (voice.Transcript, error)

func (recognizer) Name() string { return "scripted" }

func (e recognizer) Recognize(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	pcm := make([]int16, voice.MicRate*20)
	n, err := u.Read(ctx, pcm, 0)
	if err != nil {
		return voice.Transcript{}, err
	}
	return e(pcm[:n])
}

// program is a command that synthesizes its last argument as a WAV.
type program []string

func (p program) Name() string { return p[0] }

func (p program) Synthesize(ctx context.Context, text string, _ voice.Options, out func([]int16) error) error {
	sound, err := exec.CommandContext(ctx, p[0], append(p[1:len(p):len(p)], text)...).Output()
	if err != nil {
		return fmt.Errorf("%v (apt install espeak-ng flite): %w", p, err)
	}
	w, err := voice.NewWAVReader(strings.NewReader(string(sound)))
	if err != nil {
		return err
	}
	to := voice.NewResampler(w.Rate, voice.SpeakerRate)
	pcm := make([]int16, 4096)
	for {
		n, err := w.Read(pcm)
		if err != nil {
			return nil
		}
		if err := out(to.Resample(pcm[:n])); err != nil {
			return err
		}
	}
}

// loud is a synthesizer of n samples for each sentence.
type loud int

func (loud) Name() string { return "loud" }

func (n loud) Synthesize(_ context.Context, _ string, _ voice.Options, out func([]int16) error) error {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = int16(i)
	}
	return out(pcm)
}

// harness is a server with scripted chats.
type harness struct {
	*avatartest.Appliance
	chats *avatartest.Chats
}

func newHarness(t testing.TB, change func(*Options)) *harness {
	t.Helper()
	h := &harness{chats: &avatartest.Chats{Answer: says(agent.Say{Text: "Yes."})}}
	h.Appliance = avatartest.Start(t, func(f *feed.Feed) avatartest.Server {
		o := Options{Feed: f, Chat: h.chats, Words: agent.StockWords(), Name: "Chan", Speech: voice.Options{Language: "en"},
			Loudness: &voice.Loudness{}, Log: slog.New(slog.DiscardHandler)}
		if change != nil {
			change(&o)
		}
		return New(o)
	}, avatartest.Lock())
	return h
}

func (h *harness) dial(query string) (*socket.Conn, error) {
	return socket.Dial(context.Background(), h.URL+"/client-ws"+query, socket.Options{})
}

// open returns a client after the greeting.
func (h *harness) open(t testing.TB, query string) *avatartest.Client {
	t.Helper()
	return avatartest.LLMVTuber(t, h.URL, "?token="+avatartest.Key+query)
}

var errBroken = errors.New("broken")
