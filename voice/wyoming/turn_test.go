package wyoming

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"perch/voice"
)

// TestOnlyAConfiguredServerJudges checks that no server is searched on the network to judge turns.
func TestOnlyAConfiguredServerJudges(t *testing.T) {
	e := newEngine(t, Options{Find: func(context.Context) ([]string, error) {
		t.Error("the network is searched")
		return nil, nil
	}})
	if _, err := e.JudgeEnd(t.Context(), said(time.Second)); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// ends is the info of perch-speech with a model for the end of turns.
const ends = `{"tts":[{"name":"perch-speech","installed":true,"voices":[{"name":"a"}]}],"perch-turn":[{"name":"perch-speech","installed":true}]}`

// TestEndOfTurn checks the request, and what becomes of the responses.
func TestEndOfTurn(t *testing.T) {
	for name, c := range map[string]struct {
		info, response string
		want           float64
		fault          string
	}{
		"finished":            {ends, `{"type":"perch-turn","data":{"complete":0.87}}`, 0.87, ""},
		"after another event": {ends, `{"type":"ping"}` + "\n" + `{"type":"perch-turn","data":{"complete":0}}`, 0, ""},
		"not a probability":   {ends, `{"type":"perch-turn","data":{"complete":1.5}}`, 0, "0 to 1"},
		"not a number":        {ends, `{"type":"perch-turn","data":{"complete":"yes"}}`, 0, "0 to 1"},
		"an error":            {ends, `{"type":"error","data":{"text":"The end of the turn was not judged."}}`, 0, "not judged"},
		"cut off":             {ends, "", 0, "closed the connection"},
		"another server":      {whisper, "", 0, "smart-turn"},
		"not installed":       {strings.ReplaceAll(ends, `perch-speech","installed":true}]`, `perch-speech","installed":false}]`), "", 0, "smart-turn"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{info: c.info, script: func(p *peer, first Event) {
				if first.Type != TypeTurn || len(first.Data) > 0 {
					t.Errorf("asked by %s %s", first.Type, first.Data)
				}
				bytes := 0
				for e := p.next(); e.Type != TypeAudioStop; e = p.next() {
					bytes += len(e.Payload)
				}
				if bytes != 2*voice.MicRate {
					t.Errorf("%d bytes of sound were sent", bytes)
				}
				if c.response != "" {
					p.say(c.response + "\n")
					p.hangUp()
				}
			}}
			got, err := newEngine(t, Options{Address: f.listen(t)}).JudgeEnd(t.Context(), said(time.Second))
			switch {
			case c.fault == "" && (err != nil || got != c.want):
				t.Errorf("%v, %v", got, err)
			case c.fault != "" && (!errors.Is(err, voice.ErrUnavailable) || !strings.Contains(err.Error(), c.fault)):
				t.Errorf("%v, want %s", err, c.fault)
			}
		})
	}
}
