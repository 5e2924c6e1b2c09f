package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"perch/cmd/perch/appliancetest"
)

// soakSentence is what the fake recognizer understands in every utterance.
const soakSentence = "what time is it"

// newSoakEngines starts a fake recognizer, language model and synthesizer. The model answers with three sentences. If the
// text matches soakAsk, the model calls a timer tool instead, and sends the tool's result to results.
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
			default: // results is full
			}
		}
		return ""
	}
	return p
}

// soakAsk matches the texts in which soakOwner asks for a timer to be set or cancelled.
var soakAsk = regexp.MustCompile(`soak (set|cancel) ([A-Za-z0-9]+)`)

// soakToolCall returns the tool call, in JSON, for the last match of soakAsk in text, or "" if there is none.
func soakToolCall(text string) string {
	found := soakAsk.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return ""
	}
	name, arguments := "set_timer", map[string]any{"seconds": 80000, "text": "timer " + found[len(found)-1][2]}
	if found[len(found)-1][1] == "cancel" {
		name, arguments = "cancel_timer", map[string]any{"id": found[len(found)-1][2]}
	}
	text2, _ := json.Marshal(arguments)
	quoted, _ := json.Marshal(string(text2))
	return fmt.Sprintf(`[{"index":0,"id":"c1","type":"function","function":{"name":%q,"arguments":%s}}]`, name, quoted)
}
