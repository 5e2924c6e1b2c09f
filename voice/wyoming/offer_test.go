package wyoming

import (
	"net"
	"strings"
	"testing"

	"perch/must"
)

func TestAskPerchSpeech(t *testing.T) {
	closed := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed.Close()
	for name, test := range map[string]struct {
		address, hears, speaks string
		fails                  bool
	}{
		"perch-speech":    {(&fake{info: strings.ReplaceAll(piper, `"piper"`, `"perch-speech"`)}).listen(t), "", "en_GB-alba-medium, de_DE-thorsten-low", false},
		"without models":  {(&fake{info: "{}"}).listen(t), "", "", false},
		"another program": {(&fake{info: piper}).listen(t), "", "", false},
		"nothing":         {closed.Addr().String(), "", "", false},
		"no answer":       {(&fake{script: func(*peer, Event) {}}).listen(t), "", "", true},
	} {
		offer, err := AskPerchSpeech(t.Context(), "tcp://"+strings.TrimPrefix(test.address, "tcp://"))
		if Names(offer.Hears) != test.hears || Names(offer.Speaks) != test.speaks || err != nil != test.fails {
			t.Errorf("%s: it hears with %q and speaks with %q (%v)", name, Names(offer.Hears), Names(offer.Speaks), err)
		}
	}
	if voices := []Model{{Languages: []string{"en_GB"}}}; HasLanguage(nil, "en") || !HasLanguage(voices, "en") || HasLanguage(voices, "de") {
		t.Error("the languages of models are wrong")
	}
}
