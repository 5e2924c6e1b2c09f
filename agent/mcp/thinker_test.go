package mcp_test

import (
	"context"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/mcp"
	"perch/agent/thinker"
)

// script is a model that uses two tools and then says what they said.
type script struct {
	offered []string
	answers []thinker.Message
}

func (*script) Name() string { return "script" }

func (m *script) Continue(_ context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	if m.offered == nil {
		for _, tool := range p.Tools {
			m.offered = append(m.offered, tool.Name)
		}
		for i, name := range []string{"files_echo", "home_fail"} {
			if err := out(thinker.Piece{Call: &thinker.ToolCall{ID: string(rune('a' + i)), Name: name,
				Arguments: []byte(`{"text":"from afar"}`)}}); err != nil {
				return "", err
			}
		}
		return thinker.StopTools, nil
	}
	for _, message := range p.Messages {
		if message.Role == thinker.RoleTool {
			m.answers = append(m.answers, message)
		}
	}
	return thinker.StopEnd, out(thinker.Piece{Text: "😊 Done."})
}

func TestAThinkerUsesTheToolsOfTwoServers(t *testing.T) {
	files, _ := child(t, "real", mcp.Options{Name: "files", Only: []string{"echo", "fail"}})
	home, _ := child(t, "real", mcp.Options{Name: "home", Only: []string{"echo", "fail"}})
	gone, _ := open(t, mcp.Options{Name: "gone", Command: []string{"no-such-program-here"}})
	for _, there := range []*mcp.Server{files, home} { // a turn does not wait long for a server
		if err := there.Warm(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	m := &script{}
	k := thinker.New(thinker.Options{Model: m, Sources: []thinker.ToolSource{files, gone, home}})
	var spoken []string
	err := k.Think(soon(t), agent.Turn{Text: "go"}, func(r agent.Reply) error {
		if say, ok := r.(agent.Say); ok {
			spoken = append(spoken, say.Text)
		}
		return nil
	})
	if err != nil || strings.Join(spoken, " ") != "Done." {
		t.Errorf("it says %q, %v", spoken, err)
	}
	if got := strings.Join(m.offered, " "); !strings.HasSuffix(got, "files_echo files_fail home_echo home_fail") {
		t.Errorf("the model is offered %s", got)
	}
	if len(m.answers) != 2 || m.answers[0].Text != "from afar" || m.answers[1].Text != "Error: the disk is full" || !m.answers[1].Failed {
		t.Errorf("the tools said %+v", m.answers)
	}
}
