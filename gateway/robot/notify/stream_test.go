package notify

import (
	"testing"
	"testing/synctest"
)

// TestPlanWithoutSound checks that Plan estimates all times if the synthesis has not begun in time.
func TestPlanWithoutSound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		subtitles, err := NewStream([]string{"The door is open.", "Please close it."}).Plan(t.Context())
		if err != nil || len(subtitles) != 2 || subtitles[0].Start != 0 || subtitles[1].Start <= 0 {
			t.Errorf("%+v, %v", subtitles, err)
		}
	})
}
