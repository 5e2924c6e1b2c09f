package agent_test

import (
	"testing"

	"perch/agent"
)

func TestYesOrNo(t *testing.T) {
	for answer, want := range map[string]string{
		"yes": "yes", "Yes, please!": "yes", "yeah sure, go ahead": "yes", "Okay.": "yes", "go ahead": "yes", "you may": "yes", "do it": "yes",
		"ja": "yes", "Ja, bitte.": "yes", "na klar": "yes", "in Ordnung": "yes", "mach das ruhig": "yes", "Jawohl": "yes",
		"natürlich darfst du das": "yes",
		"no":                      "no", "No, thanks": "no", "don't do it": "no", "Don’t": "no", "yes no": "no", "okay, stop": "no", "do not do it": "no", "not yes": "no",
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
