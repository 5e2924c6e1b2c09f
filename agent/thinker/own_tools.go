package thinker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent"
)

// Bounds of the appliance's own tools.
const (
	maxRecalled   = 20      // number of facts in the result of recall
	maxDeepAnswer = 6 << 10 // length of the result of think_hard, in bytes
)

// ownTools returns the appliance's own tools for a turn, including those of avatarTools. It leaves out the tools that
// need an option which is not set, or that the turn may not use.
func (k *Brain) ownTools(t agent.Turn, hooks turnHooks) (all []turnTool) {
	offer := func(name, description, properties string, run func(context.Context, json.RawMessage) (string, error)) *turnTool {
		all = append(all, newTool(name, description, `{"type":"object","properties":`+properties+`}`, run))
		return &all[len(all)-1]
	}
	if k.Memory != nil {
		if k.mayUse(t, "remember") {
			tool := newTool("remember",
				"Keep a fact about the people of the house, for good. Only what they will still want known in a month.", rememberSchema,
				toolFunc(func(_ context.Context, f agent.Fact) (string, error) { return k.remember(t, f) }))
			tool.private = true // only the owner may read what is remembered
			all = append(all, tool)
		}
		offer("recall", "Look for what was remembered, by words that stand in it. What matters most comes first.",
			`{"query":{"type":"string","description":"one to three words"}},"required":["query"]`,
			toolFunc(func(_ context.Context, a struct{ Query string }) (string, error) { return k.recall(t, a.Query) }))
	}
	if k.Timers != nil && !t.Untrusted {
		offer("set_timer", "Set a timer by seconds, or a reminder or alarm by a clock time, once or on days of the week. Say that it is set only after this has answered.",
			`{"seconds":{"type":"integer","minimum":1,"maximum":86400},"at":{"type":"string","description":"in place of seconds, such as 18:30"},`+
				`"days":{"type":"string","description":"with at, for one that repeats: such as mon tue wed thu fri"},`+
				`"text":{"type":"string","description":"the sentence that will be said then"}},"required":["text"]`,
			toolFunc(func(ctx context.Context, a timerArguments) (string, error) { return k.setTimer(ctx, t, a) }))
		offer("cancel_timer", "Cancel a timer, reminder or alarm by its id, or all of them.",
			`{"id":{"type":"string","description":"left out for all"}}`,
			toolFunc(func(ctx context.Context, a struct{ ID string }) (string, error) { return k.cancelTimer(ctx, t, a.ID) }))
	}
	if k.Notify != nil && !t.Untrusted {
		offer("notify", "Tell everybody at home something, on every robot and screen. Not to answer who is talking to you.",
			`{"text":{"type":"string"},"urgency":{"type":"string","enum":["low","normal","high"]}},"required":["text"]`,
			toolFunc(func(_ context.Context, a struct{ Text, Urgency string }) (string, error) {
				return "It will be told.", k.Notify(a.Text, a.Urgency)
			}))
	}
	if t.Music != nil {
		names, _ := json.Marshal(t.Music.Names()) // strings can always be encoded
		offer("play_music", "Play music or a radio station on the robot, until somebody stops it. It begins when you have spoken: say in a few words what comes.",
			`{"name":{"type":"string","enum":`+string(names)+`}},"required":["name"]`,
			toolFunc(func(ctx context.Context, a struct{ Name string }) (string, error) {
				return "It begins when you have spoken.", t.Music.Play(ctx, a.Name)
			}))
		offer("stop_music", "Stop the music.", `{}`,
			func(ctx context.Context, _ json.RawMessage) (string, error) { return "It is off.", t.Music.Stop(ctx) })
	}
	if k.Senses != nil && t.Body != nil {
		look := offer("get_perception",
			"What you have sensed of late: faces, sounds and where they came from, touches, your battery. Not what the camera sees now.", `{}`,
			func(context.Context, json.RawMessage) (string, error) {
				text, err := json.Marshal(k.Senses.Perception(t.Robot, t.Now))
				return string(text), err
			})
		look.together = true
	}
	if t.Body != nil {
		offer("end_talk",
			"End the talk once you have said goodbye: the robot stops listening. With asleep it also goes to sleep, as after good night.",
			`{"asleep":{"type":"boolean"}}`,
			toolFunc(func(_ context.Context, a struct{ Asleep bool }) (string, error) {
				if *hooks.after = agent.HangUp; a.Asleep {
					*hooks.after = agent.Sleep
				}
				return "The talk ends when you have spoken. Say goodbye in one short sentence.", nil
			}))
	}
	if len(k.Deep) > 0 && !t.Stranger() {
		deep := offer("think_hard",
			"Ask a slower and wiser mind a hard question. It knows nothing of this talk: the question must hold all it needs.",
			`{"question":{"type":"string"}},"required":["question"]`, toolFunc(k.thinkHard))
		deep.together, deep.agent = true, true
	}
	return append(all, k.avatarTools(t, hooks)...)
}

// newTool returns a tool of the appliance.
func newTool(name, description, schema string, run func(context.Context, json.RawMessage) (string, error)) turnTool {
	return turnTool{Tool: Tool{Name: name, Description: description, Schema: json.RawMessage(schema)}, run: run}
}

// recall runs the tool recall.
func (k *Brain) recall(t agent.Turn, query string) (string, error) {
	memory := k.Memory.Of(t)
	found, err := memory.Query(agent.Query{Text: query, N: maxRecalled}, t.Now)
	if err != nil {
		return "", err
	}
	if words := strings.Fields(query); len(found) == 0 && len(words) > 1 { // no entry has all the words
		if found, err = queryAnyOf(memory, words, t.Now); err != nil {
			return "", err
		}
	}
	if err := memory.Err(); len(found) == 0 && err != nil {
		return "", fmt.Errorf("read what is remembered: %w", err)
	}
	if len(found) == 0 {
		return "Nothing is remembered about that.", nil
	}
	var b strings.Builder
	for _, e := range found {
		fmt.Fprintf(&b, "- %s (%s)\n", agent.Speakable(e.Body), e.Created.In(t.Now.Location()).Format(time.DateOnly))
	}
	return b.String(), nil
}

// queryAnyOf returns the entries that have at least one of the words, at most maxRecalled. It ignores
// words of less than 3 bytes. Entries with more of the words come first; entries with the same number
// of words are in the order of their score.
func queryAnyOf(memory *agent.Memory, words []string, now time.Time) (found []agent.Ranked, err error) {
	has := map[string]int{} // number of words that an entry has; key: ID of the entry
	for _, w := range words {
		if len(w) < 3 { // one Han character has three bytes
			continue
		}
		entries, err := memory.Query(agent.Query{Text: w, N: maxRecalled}, now)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if has[e.ID]++; has[e.ID] == 1 {
				found = append(found, e)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b agent.Ranked) int { return cmp.Or(has[b.ID]-has[a.ID], cmp.Compare(b.Score, a.Score)) })
	return found[:min(len(found), maxRecalled)], nil
}

// timerArguments are the arguments of set_timer.
type timerArguments struct {
	Seconds        json.Number
	At, Days, Text string
}

// setTimer runs the tool set_timer.
func (k *Brain) setTimer(ctx context.Context, t agent.Turn, a timerArguments) (string, error) {
	days, err := agent.ParseDays(a.Days)
	if err != nil {
		return "", err
	}
	timer := agent.Timer{Robot: t.Robot, Text: a.Text, At: a.At, Days: days, Reminder: a.At != "" && days == 0}
	if a.At == "" {
		seconds, err := a.Seconds.Float64()
		if err != nil || seconds < 1 || seconds > agent.MaxTimer.Seconds() {
			return "", errors.New("give seconds from 1 to 86400, or at")
		}
		timer.Length = time.Duration(seconds) * time.Second
	}
	set, err := k.Timers.Set(ctx, t.Body, timer, t.Now)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Set. It rings at %s%s. Its id is %s.", set.Due.In(t.Now.Location()).Format(time.TimeOnly), onDays(set), set.ID), nil
}

// onDays returns the days on which an alarm repeats, such as " on mon tue", or "" for one that does not.
func onDays(t agent.Timer) string {
	if t.Days == 0 {
		return ""
	}
	return " on " + t.Days.String()
}

// cancelTimer runs the tool cancel_timer.
func (k *Brain) cancelTimer(ctx context.Context, t agent.Turn, id string) (string, error) {
	var ids []string
	if id != "" {
		ids = []string{id}
	}
	cancelled, err := k.Timers.Cancel(ctx, t.Body, t.Robot, ids...)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d cancelled.", cancelled), nil
}

// thinkHard runs the tool think_hard: it returns the answer of the first deep model that answers in time.
func (k *Brain) thinkHard(ctx context.Context, a struct{ Question string }) (string, error) {
	if strings.TrimSpace(a.Question) == "" {
		return "", errors.New("it needs a question")
	}
	within, cancel := context.WithTimeout(ctx, deepWithin)
	defer cancel()
	text, err := AskModels(within, k.Deep, a.Question)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case within.Err() != nil:
		return "", fmt.Errorf("no answer within %s", deepWithin)
	}
	return text, err
}

// AskModels asks one model after the other for a few plain sentences, and returns the first
// answer. The answer ends after the piece with which it exceeds maxDeepAnswer bytes. If no model
// answers, the error names each model and why it failed; if ctx has ended, it is ctx's error.
func AskModels(ctx context.Context, models []Model, question string) (string, error) {
	p := Prompt{System: "Think this through and give the result in a few plain sentences.", Messages: []Message{{Role: RoleUser, Text: question}}}
	var failures []error
	for _, m := range models {
		var answer strings.Builder
		_, err := m.Continue(ctx, p, func(piece Piece) error {
			if answer.WriteString(piece.Text); answer.Len() > maxDeepAnswer {
				return errEnough
			}
			return nil
		})
		text := strings.TrimSpace(answer.String())
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err == nil && text != "", errors.Is(err, errEnough):
			return text, nil
		case err == nil:
			err = errors.New("the answer is empty")
		}
		failures = append(failures, fmt.Errorf("%s: %w", m.Name(), err))
	}
	return "", errors.Join(failures...)
}

// toolFunc returns a function for turnTool.run that decodes the arguments from JSON and passes
// them to run. The error for invalid arguments is written for the model.
func toolFunc[A any](run func(ctx context.Context, a A) (string, error)) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, args json.RawMessage) (string, error) {
		var a A
		err := json.Unmarshal(args, &a)
		var wrong *json.UnmarshalTypeError
		switch {
		case err == nil:
			return run(ctx, a)
		case errors.As(err, &wrong) && wrong.Field != "":
			return "", fmt.Errorf("the argument %.60s may not be a JSON %s", strings.ToLower(wrong.Field), wrong.Value)
		}
		return "", errors.New("the arguments are not a JSON object as the schema requires")
	}
}
