package perception

import "testing"

func TestIdleGazer(t *testing.T) {
	act(t, []string{"gaze", "sound"}, []scene{
		{"nothing to do", "", nil, "0s mode idle; 80s .", "25s turn -15; 50s turn 0; 1m15s turn 10"},
		{"it senses nothing, as stock firmware does", "", nil, "0s .; 200s .", ""},
		{"it has sensed nothing for long", "", nil, "0s mode idle; 40s lost; 400s .",
			"25s turn -15; 50s turn 0; 1m15s turn 10; 1m40s turn 25; 2m5s turn 0; 2m30s turn -25; 2m55s turn -5; 3m20s turn 0; 3m45s turn 17; 4m10s turn 0; 4m35s turn -15; 5m0s turn 0; 5m25s turn 10"},
		{"somebody is there", "", nil, "0s face; 80s .", ""},
		{"somebody has left", "", nil, "0s face; 60s lost; 90s .", "1m25s turn -15"},
		{"a hand is on its head", "", nil, "0s pet; 80s .", ""},
		{"it listens", "", nil, "0s mode idle; 1s listens; 80s .", ""},
		{"a talk was not long ago", "", nil, "0s mode idle; 1s heard x; 10s ends; 90s .", "1m25s turn -15"},
		{"it looks around by itself", "", nil, `0s idle_motion {"action":"look"}; 100s .; 200s mode idle; 330s .`, "5m25s turn -15"},
		{"it guards", "", nil, "0s mode security; 80s .", ""},
		{"a sound holds its look", "", nil, "0s mode idle; 20s sound left; 75s .", "20s turn -45; 1m10s turn -15"},
		{"at night", "23:00", nightly, "0s mode idle; 80s .", ""},
		{"told good night", "", nil, "0s mode idle; 1s goodnight; 80s .", ""},
		{"the channel is closed", "", nil, "0s mode idle; 1s offline; 80s .", ""},
		{"the channel opens", "", nil, "0s offline; 50s online; 51s mode idle; 80s .", "1m16s turn -15"},
		{"farther", "", func(t *Tuning) { t.Gaze.Yaw = 100 }, "0s mode idle; 26s .", "25s turn -60"},
	})
}
