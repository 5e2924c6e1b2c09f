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

// says returns a function for avatartest.Chats.Answer that answers every text with replies.
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

// forever is a function for avatartest.Chats.Answer whose reply lasts until it is interrupted.
func forever(ctx context.Context, _ string, take func(agent.Reply) error) error {
	for ctx.Err() == nil {
		if err := take(agent.Say{Text: "And another."}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// recognizer is a voice.Recognizer that calls the function with the sound of the whole utterance.
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

// program is a voice.Synthesizer that runs a command. The command gets the text as its last argument,
// and writes a WAV file to its standard output.
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

// loud is a voice.Synthesizer. Its value is the number of samples for each sentence.
type loud int

func (loud) Name() string { return "loud" }

func (n loud) Synthesize(_ context.Context, _ string, _ voice.Options, out func([]int16) error) error {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = int16(i)
	}
	return out(pcm)
}

// harness is a running server whose agent is chats.Answer.
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

// open connects a client, and reads the messages of the greeting. query begins with "&", or is empty.
func (h *harness) open(t testing.TB, query string) *avatartest.Client {
	t.Helper()
	return avatartest.LLMVTuber(t, h.URL, "?token="+avatartest.Key+query)
}

var errBroken = errors.New("broken")
