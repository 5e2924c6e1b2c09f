package perception

import "testing"

func TestWakeWordTurner(t *testing.T) {
	act(t, []string{"wake_word", "sound"}, []scene{
		{"from the left", "", nil, "0s called left", "0s turn -45"},
		{"from the right", "", nil, "0s called right", "0s turn 45"},
		{"from the front", "", nil, "0s called centre", ""},
		{"from nowhere", "", nil, "0s wake_word_detected {}; 1s wake_word {}", ""},
		{"from nowhere, after a sound", "", func(t *Tuning) { t.Sound.On = false }, "0s sound left; 1s wake_word_detected {}", ""},
		{"again at once, from the other side: it has no rest", "", func(t *Tuning) { t.WakeWord.Hold = 0 }, "0s called left; 1s called right",
			"0s turn -45; 1s turn 45"},
		{"a sound does not turn it away", "", nil, "0s called left; 2.9s sound right", "0s turn -45"},
		{"a later sound does", "", nil, "0s called left; 3s sound right", "0s turn -45; 3s turn 45"},
		{"it goes before a sound", "", nil, "0s sound left; 1s called right", "0s turn -45; 1s turn 45"},
		{"a sound rests after a turn of its own", "", func(t *Tuning) { t.WakeWord.Hold = 0 },
			"0s sound left; 1s called right; 2s sound left; 3s sound left", "0s turn -45; 1s turn 45; 3s turn -45"},
		{"somebody is there", "", nil, "0s face; 1s called left", ""},
		{"somebody talks with it", "", nil, "0s heard x; 1s called left", ""},
		{"its brain moves the head", "", nil, "0s moves; 9.9s called left; 10s called left", "10s turn -45"},
		{"at night", "23:00", nightly, "0s called left", ""},
		{"it dances", "", nil, "0s dance_started {}; 1s called left", ""},
	})
}
