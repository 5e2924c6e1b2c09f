package homeassistant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/discovery"
	"perch/limit"
	"perch/plain"
)

// parseAnswer reads an answer: a word, for the question that is shown, or an
// object that names its question.
func parseAnswer(payload []byte) (id string, allow bool, err error) {
	text := strings.TrimSpace(string(payload))
	switch {
	case len(payload) > mostSmall:
		return "", false, fmt.Errorf("the payload has %d bytes, more than %d", len(payload), mostSmall)
	case text == discovery.Allow || text == discovery.Deny:
		return "", text == discovery.Allow, nil
	}
	var a struct {
		ID    string `json:"id"`
		Allow *bool  `json:"allow"`
	}
	err = object(text, &a, true)
	if err == nil && (a.ID == "" || a.Allow == nil) {
		err = errors.New("id and allow are needed")
	}
	if err != nil {
		return "", false, fmt.Errorf(`an answer is allow, deny, or {"id":"..","allow":true}: %w`, err)
	}
	return a.ID, *a.Allow, nil
}

// answer takes what was published under an agent's topic.
func (h *hub) answer(ctx context.Context, id, thing string, m connection.Incoming) {
	now := time.Now()
	question, allow, err := h.answerTo(id, thing, m, now)
	if err != nil {
		h.refuseAnswer(id, now, err)
		m.Ack()
		return
	}
	queued := h.lanes.Add(ctx, answers, device.Job{Do: func(context.Context) {
		if err := h.o.Questions.Reply(question, allow); err != nil {
			h.o.Log.Warn("an answer over MQTT came too late", "session", id, "err", err)
		}
		m.Ack()
	}})
	if !queued {
		h.refuseAnswer(id, now, errors.New("too many answers came at once"))
		m.Ack()
	}
}

// answers is the lane that answers are given in.
const answers = device.ID("answers")

func (h *hub) refuseAnswer(id string, now time.Time, why error) {
	h.refused.log("", now, "an answer over MQTT is refused", "session", plain.Clip(id, limit.Name), "err", why)
}

// answerTo is the question that an answer is for.
func (h *hub) answerTo(id, thing string, m connection.Incoming, now time.Time) (question string, allow bool, err error) {
	v := h.agents.called(id)
	switch {
	case m.Retained:
		return "", false, errors.New("it was published retained, and would be given again at every connection; publish it without")
	case v == nil:
		return "", false, errors.New("there is no such agent, or no longer")
	case h.o.User == "":
		return "", false,
			errors.New("the broker accepts clients without a user; give Perch a user there, as mqtt.user, and refuse clients without one")
	case thing != "answer":
		return "", false, fmt.Errorf("there is no %.40q to set", thing)
	}
	question, allow, err = parseAnswer(m.Payload)
	switch {
	case err != nil:
		return "", false, err
	case question != "":
		if !slices.ContainsFunc(v.asked, func(q askedOf) bool { return q.id == question && q.answerable }) {
			return "", false, agent.ErrNoQuestion
		}
		return question, allow, nil
	case len(v.asked) == 0 || !v.asked[0].answerable:
		return "", false, agent.ErrNoQuestion
	case now.Sub(v.since) < answerAfter:
		// A second press, or one that was meant for the question before.
		return "", false, fmt.Errorf("the question has been shown for less than %s, which is too short to read it", answerAfter)
	}
	return v.asked[0].id, allow, nil
}
