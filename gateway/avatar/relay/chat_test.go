package relay

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/avatar/skin"
	"perch/store/storetest"
	"perch/voice"
)

// quick is a brain that sends its whole answer at once.
type quick struct {
	replies []agent.Reply
	begin   chan struct{} // closed when the brain may answer
}

func (quick) Name() string { return "quick" }

func (q quick) Think(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
	<-q.begin
	for _, r := range q.replies {
		if err := out(r); err != nil {
			return err
		}
	}
	return nil
}

// noRobots is a registry without robots.
type noRobots struct{}

func (noRobots) Get(device.ID) (device.Robot, error) { return device.Robot{}, device.ErrUnknownRobot }
func (noRobots) Trusts(device.ID) bool               { return false }

// TestChatWithoutRobot compares the messages to all programs with testdata/chat.txt. The agent answers at
// once. No message may come before the time in that file, but it may come later on a busy machine.
func TestChatWithoutRobot(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "testdata/chat.txt")
	var loudness voice.Loudness
	h, all := play(t, "desk", func(r *Relays) { r.o.Voice = &loudness })
	mouths := []string{"stackchan.mouth", "property/Mouth", "Stackchan/Mouth", "MouthOpen", `"A" `}
	request := regexp.MustCompile(`"requestId":"\d+"`)
	whole := map[string]toldProgram{}
	for _, p := range all { // ignore the mouths, and the order of the text and the item of OBS
		whole[p.kind] = p.told
		p.told = plainly{p.told, func(message string) string {
			if slices.ContainsFunc(mouths, func(name string) bool { return strings.Contains(message, name) }) {
				return ""
			}
			if !strings.Contains(message, `"requestId"`) {
				return strings.TrimSpace(message)
			}
			return request.ReplaceAllString(strings.TrimSpace(message), `"requestId":"~"`)
		}}
	}
	g.act("the programs are connected", all)
	log := slog.New(slog.DiscardHandler)
	b := quick{[]agent.Reply{agent.Felt{Emotion: agent.Emotion{Name: "happy", Emoji: "😊"}}, agent.Say{Text: "It is warm outside today."},
		agent.Felt{Emotion: agent.Emotion{Name: "sad", Emoji: "😢"}}, agent.Say{Text: "But it may rain tonight."},
		agent.Done{End: agent.Continue}}, make(chan struct{})}
	mind := agent.NewMind(agent.Always(b), agent.NewMemory(&storetest.Table[agent.Entry]{}), h.bus, log)
	chats := skin.New(skin.Options{Feed: h.feed, Bus: h.bus, Robots: noRobots{}, Mind: mind, Words: agent.StockWords(), Zone: time.UTC,
		Loudness: &loudness, Log: log})
	var chat sync.WaitGroup
	defer chat.Wait()
	chat.Go(func() {
		if err := chats.Chat(t.Context(), "desk", "", "How warm is it?", func(agent.Reply) error { return nil }); err != nil {
			t.Error(err)
		}
	})
	g.act("it thinks", all)
	began := time.Now()
	close(b.begin)
	acts := []struct {
		what string
		ms   int
	}{{"its first sentence", 0}, {"its second sentence", 1620}, {"the turn ends", 3180}, {"it is at rest", 7180}, {"", 8500}}
	for i, a := range acts[:len(acts)-1] {
		due := began.Add(time.Duration(a.ms) * time.Millisecond)
		g.wait = time.Until(began.Add(time.Duration(acts[i+1].ms-100) * time.Millisecond))
		what := fmt.Sprintf("%d.%02d s: %s", a.ms/1000, a.ms/10%100, a.what)
		for kind, at := range g.act(what, all) {
			if late := at.Sub(due); len(g.want[what+"/"+kind]) > 0 && (late < -20*time.Millisecond || late > 10*time.Second) && !g.rewrite {
				t.Errorf("%s: %s is told %s after its time", what, kind, late)
			}
		}
	}
	g.end(all)
	for _, kind := range []string{"nizima", "unreal", "vmc", "vrchat", "vtube_studio", "warudo"} {
		open := regexp.MustCompile(`(` + strings.Join(mouths, "|") + `)\D*0\.[1-9]`)
		if !open.MatchString(whole[kind].all()) {
			t.Errorf("no mouth of %s moves", kind)
		}
	}
}
