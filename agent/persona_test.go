package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"perch/agent"
	"perch/must"
)

func TestAPersona(t *testing.T) {
	const file = "---\r\nname: Robbi\nlanguage: de\nvoice: de-x # mine\nbrain:\n  temperature: 0\n  max_tokens: 300\n  model: qwen\n---\n" +
		"\n# Du\n\nDu bist **nett**.\n"
	name := filepath.Join(t.TempDir(), "persona.md")
	must.Succeed(t, os.WriteFile(name, []byte(file), 0o600))
	p, err := agent.LoadPersona(name)
	if err != nil || p.Name != "Robbi" || p.Language != "de" || p.Voice != "de-x" || p.Text != "# Du\n\nDu bist **nett**." {
		t.Errorf("%+v, %v", p, err)
	}
	if b := p.Brain; b.Temperature == nil || *b.Temperature != 0 || b.MaxTokens != 300 || b.Model != "qwen" {
		t.Errorf("%+v", b)
	}
	if _, err := agent.LoadPersona(name + "x"); err == nil {
		t.Error("a file that is not there was read")
	}
	for text, want := range map[string]agent.Persona{
		"":                         agent.DefaultPersona(),
		"---\n---\n":               agent.DefaultPersona(),
		"You are a cat.":           {Name: "Chan", Text: "You are a cat."},
		"---\nname: Tom\n---\nCat": {Name: "Tom", Text: "Cat"},
	} {
		if p, err := agent.ParsePersona([]byte(text)); err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
}

func TestInvalidPersonas(t *testing.T) {
	for text, want := range map[string]string{
		"---\nname: x":                                        "line 1: ",
		"---\nname: x\nvoize: y\n---\n":                       `line 3: the front matter has no key "voize"`,
		"---\nname: x\nname: y\n---\n":                        "line 3: ",
		"---\nname: ''\n---\n":                                "line 2: a name",
		"---\nname: [x]\n---\n":                               "line 2: ",
		"---\nbrain:\n  temperature: hot\n---\n":              "line 3: temperature",
		"---\nbrain:\n  temperature: .nan\n---\n":             "line 3: temperature",
		"---\nbrain:\n  max_tokens: -1\n---\n":                "line 3: max_tokens",
		"---\nbrain: 5\n---\n":                                "line 2: ",
		"---\n- x\n---\n":                                     "line 2: ",
		"---\nname: x\n  y: z\n---\n":                         "line ",
		"a\nb\xff":                                            "line 2: ",
		strings.Repeat("x", 32<<10+1):                         "bytes",
		"---\nvoice: " + strings.Repeat("x", 201) + "\n---\n": "line 2: ",
	} {
		if _, err := agent.ParsePersona([]byte(text)); !errors.Is(err, agent.ErrPersona) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func FuzzPersona(f *testing.F) {
	f.Add([]byte("---\nname: Robbi\nbrain: {temperature: 0.5, max_tokens: 3}\n---\nText"))
	f.Add([]byte("---\nname: &a [*a]\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := agent.ParsePersona(data)
		if err == nil && (p.Name == "" || p.Text == "" || len(p.Text) > 32<<10) {
			t.Errorf("%+v", p)
		}
		if err != nil && !errors.Is(err, agent.ErrPersona) {
			t.Error(err)
		}
	})
}
