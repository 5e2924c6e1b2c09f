package skill_test

import (
	"encoding/json"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/skill"
	"perch/event"
)

// TestBuiltInSkillsSpeakTheLanguage of the turn, and that of the household where no
// turn says one. None of them is English in another language.
func TestBuiltInSkillsSpeakTheLanguage(t *testing.T) {
	l := library(t, skill.Options{Language: func() string { return "de-AT" }, Remember: func(skill.Call, string, string) error { return nil },
		Sign: func(m string) (event.Signed, error) { return event.Signed{Message: m, Signature: "y"}, nil }})
	for _, c := range []struct{ language, skill, args, want string }{
		{"", "greet", `{"name":"Ann"}`, "Hallo, Ann!"},
		{"", "greet", `{}`, "Hallo!"},
		{"", "help", ``, "Ich kann: grüßen, helfen, mir etwas merken, nachdenken, unterschreiben."},
		{"en-GB", "greet", `{"name":"Ann"}`, "Hello, Ann!"},
		{"sv", "greet", `{"name":"Ann"}`, "Hello, Ann!"}, // of which there are no phrases
		{"ja", "greet", `{"name":"花子"}`, "花子さん、こんにちは！"},
		{"zh-CN", "greet", `{}`, "你好！"},
		{"es", "remember", `{"content":"x"}`, "Lo recordaré."},
		{"fr", "sign-action", `{"message":"x"}`, "Je l'ai signé."},
	} {
		r, err := l.Perform(t.Context(), skill.Call{Skill: c.skill, Args: json.RawMessage(c.args), Language: c.language})
		if err != nil || r.Output != c.want {
			t.Errorf("%s in %q says %q, %v; not %q", c.skill, c.language, r.Output, err, c.want)
		}
	}
	english := map[string]string{}
	for _, language := range []string{"en", "de", "es", "fr", "ja", "zh"} {
		for _, name := range []string{"greet", "help", "remember", "sign-action"} {
			r, err := l.Perform(t.Context(), skill.Call{Skill: name, Args: json.RawMessage(`{"content":"x","message":"x"}`), Language: language})
			if err != nil || r.Output == "" || strings.Contains(r.Output, "{") {
				t.Errorf("%s in %s says %q, %v", name, language, r.Output, err)
			}
			if language == "en" {
				english[name] = r.Output
			} else if r.Output == english[name] {
				t.Errorf("%s in %s is English: %q", name, language, r.Output)
			}
		}
	}
	got, err := l.Run(t.Context(), agent.Turn{Language: "fr-FR"}, "perform_skill", json.RawMessage(`{"skill":"greet","args":{"name":"Léa"}}`))
	if err != nil || got != "Bonjour Léa !" {
		t.Errorf("for a model's turn it says %q, %v", got, err)
	}
}
