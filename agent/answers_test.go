package agent_test

import (
	"strings"
	"testing"

	"perch/agent"
)

func TestYesOrNo(t *testing.T) {
	for answer, want := range map[string]string{
		"yes": "yes", "Yes, please!": "yes", "yeah sure, go ahead": "yes", "Okay.": "yes", "go ahead": "yes", "you may": "yes", "do it": "yes",
		"ja": "yes", "Ja, bitte.": "yes", "na klar": "yes", "in Ordnung": "yes", "mach das ruhig": "yes", "Jawohl": "yes", "natürlich darfst du das": "yes",
		"no": "no", "No, thanks": "no", "don't do it": "no", "Don’t": "no", "yes no": "no", "okay, stop": "no", "do not do it": "no", "not yes": "no",
		"nein": "no", "nö": "no", "bitte nicht": "no", "auf keinen Fall": "no", "ja nein": "no", "lass das": "no", "stopp": "no", "nein danke": "no",
		"": "?", "what": "?", "please": "?", "the weather is fine": "?", "yes the weather": "?", "yesterday": "?", "now": "?",
		"if you tell me what it does yes": "?", "jaguar": "?", "vielleicht": "?", "sure as hell": "?", "bitte": "?", "...": "?",
	} {
		yes, understood := agent.YesOrNo(answer)
		got := "?"
		if understood {
			got = map[bool]string{true: "yes", false: "no"}[yes]
		}
		if got != want {
			t.Errorf("%q is %s, not %s", answer, got, want)
		}
		if yes && !understood {
			t.Errorf("%q is a yes that was not understood", answer)
		}
	}
}

func TestWhatLooksLikeAKeyIsBlanked(t *testing.T) {
	for in, want := range map[string]string{
		"npm test":                  "npm test",
		"Edit docs/architecture.md": "Edit docs/architecture.md",
		`curl -H "Authorization: Bearer abc.def-canary" x`: `curl -H "Authorization: Bearer ***" x`,
		"OPENAI_API_KEY=canary make":                       "OPENAI_API_KEY=*** make",
		`{"token": "canary"}`:                              `{"token": ***}`,
		"git clone https://me:canary@h/x":                  "git clone https://***@h/x",
		"use sk-canary12345 there":                         "use *** there",
		"push with ghp_canary12345":                        "push with ***",
		"claude --dangerously-skip-permissions":            "claude --dangerously-skip-permissions",
		"gh auth login --token canary1 --hostname h":       "gh auth login --token *** --hostname h",
		`deploy --db-password "canary two" prod`:           `deploy --db-password *** prod`,
		"psql --api-key 'canary'":                          "psql --api-key ***",
		"curl -u me:canary https://h/x":                    "curl -u me:*** https://h/x",
		`curl --user "me:canary two" https://h/x`:          `curl --user "me:***" https://h/x`,
		"serve --token-file /etc/perch/token":              "serve --token-file /etc/perch/token",
		"login --password-stdin --token --verbose":         "login --password-stdin --token --verbose",
		"perch token kitchen":                              "perch token kitchen",
		"python -u main.py":                                "python -u main.py",
		"0123456789abcdefcanary0123456789ab":               "***",
		"x " + strings.Repeat("bearer "+strings.Repeat("y", 378)+" ", 2) + "0123456789canary0123456789canary0123456789": "x bearer *** bearer ***",
		strings.Repeat("ä", 200): strings.Repeat("ä", 100),
	} {
		if got := agent.Redact(in, 200); got != want {
			t.Errorf("%q is shown as %q, not %q", in, got, want)
		}
	}
}
