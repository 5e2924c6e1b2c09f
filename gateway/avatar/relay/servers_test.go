package relay

import (
	"log/slog"
	"testing"

	"perch/agent"
	"perch/gateway/avatar/aituber"
	"perch/gateway/avatar/avatartest"
	"perch/gateway/avatar/feed"
	"perch/gateway/avatar/llmvtuber"
	"perch/gateway/avatar/openclaw"
)

// visitor is a fake program that connects to a server.
type visitor struct {
	*avatartest.Client
	dial func() *avatartest.Client
}

func (v *visitor) all() string { return v.Transcript() }

func (v *visitor) stop() { v.Leave() }

// again connects the visitor again.
func (v *visitor) again() {
	v.Client = v.dial()
	v.Listen()
}

// robotsTalk is the name of robotA's conversation.
const robotsTalk = feed.RobotPrefix + string(robotA)

// visitors starts each server, and returns a program that is connected to it, by name. talk is the name of a
// conversation, which programs join if they can.
func visitors(t testing.TB, f *feed.Feed, talk string) map[string]toldProgram {
	t.Helper()
	chats, words, log := &avatartest.Chats{}, agent.StockWords(), slog.New(slog.DiscardHandler)
	serve := func(d avatartest.Server) (url string) {
		url, _ = avatartest.Serve(t, d)
		return url
	}
	llmVTuberURL := serve(llmvtuber.New(llmvtuber.Options{Feed: f, Chat: chats, Words: words, Name: "Chan", Log: log}))
	aiTuberURL := serve(aituber.New(aituber.Options{Feed: f, Chat: chats, Words: words, Log: log}))
	openClawURL := serve(openclaw.New(openclaw.Options{Feed: f, Chat: chats, Name: func() string { return "Chan" }, Log: log}))
	joined := "?talk=" + talk
	all := map[string]toldProgram{}
	for name, dial := range map[string]func() *avatartest.Client{
		"aituber":   func() *avatartest.Client { return avatartest.AITuber(t, aiTuberURL, joined) },
		"llmvtuber": func() *avatartest.Client { return avatartest.LLMVTuber(t, llmVTuberURL, joined) },
		"openclaw":  func() *avatartest.Client { return avatartest.OpenClaw(t, openClawURL) },
	} {
		v := &visitor{dial: dial}
		v.again()
		all[name] = v
	}
	return all
}
