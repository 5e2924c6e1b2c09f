package acp_test

import (
	"errors"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/acp"
	"perch/device"
)

// TestPictures tests that each picture is shown to the agent in a new session, also during a
// turn, and that requests for permission in this session are refused.
func TestPictures(t *testing.T) {
	r := build(t, "eyes")
	look := func(question string) (string, error) {
		return r.brain.DescribeImage(t.Context(), agent.Look{Robot: robot, Question: question, Language: "de",
			Picture: device.Picture{Type: "image/jpeg", Data: []byte("jpeg")}})
	}
	if text, err := look("say A cat."); text != "A cat." || err != nil {
		t.Error(text, err)
	}
	for _, want := range []string{`{"data":"anBlZw==","mimeType":"image/jpeg","type":"image"}`, "You are the eyes", "tag de."} {
		if !strings.Contains(r.received(), want) {
			t.Errorf("the agent was not sent %s", want)
		}
	}
	if text, err := look("ask c1 execute rm"); !strings.Contains(text, "optionId no") || err != nil {
		t.Error(text, err)
	}
	var seen string
	h := &received{on: func(reply agent.Reply) (err error) {
		if _, is := reply.(agent.Say); is && seen == "" {
			seen, err = look("say A dog.")
		}
		return err
	}}
	if err := r.brain.Think(t.Context(), r.turnOf("a", "words I look.;say So."), h.take); err != nil || seen != "A dog." || h.String() != "😐|I look.|So.|.done" {
		t.Error(seen, h, err)
	}
	r.eventually("their sessions are closed", func() bool { return strings.Count(r.received(), `"session/close"`) == 3 })
	if _, err := look("stop refusal"); err == nil || errors.Is(err, agent.ErrAway) {
		t.Errorf("refused: %v", err)
	}
}

func TestPicturesThatAreNotShown(t *testing.T) {
	look := agent.Look{Robot: robot, Picture: device.Picture{Data: []byte("jpeg")}}
	if _, err := build(t, "plain").brain.DescribeImage(t.Context(), look); err != agent.ErrBlind {
		t.Errorf("to an agent without eyes: %v", err)
	}
	r := build(t, "eyes", func(o *acp.Options) { o.MayAnswer = func(device.ID) bool { return false } })
	if _, err := r.brain.DescribeImage(t.Context(), look); err != agent.ErrStranger || r.received() != "" {
		t.Errorf("a stranger's: %v", err)
	}
}
