package state

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"perch/device"
	"perch/gateway/homeassistant/discovery"
)

// TestQuestionsFitAState tests that a question is shortened to one line that Home Assistant can store as a state.
func TestQuestionsFitAState(t *testing.T) {
	long := shortened("a\n b " + strings.Repeat("ü", 400))
	if len([]rune(long)) != discovery.MaxText || !strings.HasPrefix(long, "a b ü") || !strings.HasSuffix(long, "…") {
		t.Errorf("a long question is %q", long)
	}
}

// TestAnAnswerAfterTheEndOfATurn checks that a question that was shown before may be answered at once, and that one which
// is shown from then on has to be read first.
func TestAnAnswerAfterTheEndOfATurn(t *testing.T) {
	asked := time.Unix(1000, 0)
	ended := asked.Add(10 * time.Second)
	for name, answerable := range map[string][]bool{"shown before": {true, false}, "shown from then on": {false, true}} {
		var a Agent
		for i, able := range answerable {
			a.AddQuestion(strconv.Itoa(i), "May it?", able, asked)
		}
		a.EndTurn(ended)
		if _, err := a.FindQuestion("", ended.Add(time.Millisecond)); (err == nil) != answerable[0] {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzStatus tests that any status and head angles that a robot returns make a valid document.
func FuzzStatus(f *testing.F) {
	f.Add(`{"audio_speaker":{"volume":70},"screen":{"brightness":75},"battery":{"level":82,"charging":false},"network":{"signal":"strong"},"chip":{"temperature":41.5}}`, `{"yaw":1,"pitch":2}`)
	f.Add(`{"audio_speaker":{"volume":1e300},"battery":null}`, `[]`)
	f.Fuzz(func(t *testing.T, status, head string) {
		robot := Robot{Senses: discovery.Senses{}}
		var r Readings
		var err error
		if r.Status, err = device.ParseStatus(status); err == nil {
			r.ParseAngles(head)
			robot.SetReadings(r)
		}
		d := robot.Document()
		if _, err := json.Marshal(d); err != nil {
			t.Error(err)
		}
		for _, n := range []*int{d.Volume, d.Brightness, d.Battery} {
			if n != nil && (*n < 0 || *n > 100) {
				t.Errorf("%d per cent", *n)
			}
		}
	})
}
