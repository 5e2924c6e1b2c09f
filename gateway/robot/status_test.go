package robot

import (
	"encoding/json"
	"testing"
)

// TestParseStatus: what a robot reports of itself is taken where it can be, and
// nothing is made of the rest.
func TestParseStatus(t *testing.T) {
	for answer, want := range map[string]string{
		`{"audio_speaker":{"volume":70},"screen":{"brightness":75},"battery":{"level":82,"charging":false},"network":{"signal":"strong"}}`: `{"volume":70,"brightness":75,"battery":82,"charging":false,"signal":"strong"}`,
		`{"battery":{"level":82.6}}`:                                `{"volume":null,"brightness":null,"battery":82,"charging":null}`,
		`{"battery":{"level":-1},"audio_speaker":{"volume":1e300}}`: `{"volume":null,"brightness":null,"battery":null,"charging":null}`,
		`{"battery":7}`: "", `true`: "", `not JSON`: "",
	} {
		got := ""
		if status, ok := parseStatus(answer); ok {
			text, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			got = string(text)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", answer, got, want)
		}
	}
}

func FuzzStatus(f *testing.F) {
	f.Add(`{"battery":{"level":82,"charging":true},"network":{"signal":"weak"}}`)
	f.Fuzz(func(t *testing.T, answer string) {
		status, ok := parseStatus(answer)
		if ok && len(status.Signal) > 32 || status.Battery != nil && (*status.Battery < 0 || *status.Battery > 100) {
			t.Fatalf("%+v", status)
		}
	})
}
