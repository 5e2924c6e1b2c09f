package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"perch/cmd/perch/appliancetest"
)

// soakSentence is what the engines understand, whatever is said.
const soakSentence = "what time is it"

// newSoakEngines starts a recognizer, a brain and a synthesizer, whose answer is three
// sentences long. The brain calls the tools of timers where that is what the text asks
// for, and sends what they answer to results.
func newSoakEngines(t *testing.T, results chan string) *appliancetest.Peers {
	p := appliancetest.NewPeers(t)
	p.Words = []string{"😊 It", " is", " late.", " All", " is", " well", " here.", " Ask", " me", " again."}
	p.Decides = func(role, content string) string {
		switch role {
		case "user":
			return soakToolCall(content)
		case "tool":
			select {
			case results <- content:
			default: // nobody waits for it
			}
		}
		return ""
	}
	return p
}

// soakAsk is how the owner words it, so that the brain knows what to call.
var soakAsk = regexp.MustCompile(`soak (set|cancel) ([A-Za-z0-9]+)`)

func soakToolCall(text string) string {
	found := soakAsk.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return ""
	}
	name, arguments := "set_timer", map[string]any{"seconds": 80000, "text": "timer " + found[len(found)-1][2]}
	if found[len(found)-1][1] == "cancel" {
		name, arguments = "cancel_timer", map[string]any{"id": found[len(found)-1][2]}
	}
	text2, _ := json.Marshal(arguments)      // strings and numbers
	quoted, _ := json.Marshal(string(text2)) // a string
	return fmt.Sprintf(`[{"index":0,"id":"c1","type":"function","function":{"name":%q,"arguments":%s}}]`, name, quoted)
}
