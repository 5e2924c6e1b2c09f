package perception

import "testing"

func TestDanceReflector(t *testing.T) {
	act(t, []string{"dance"}, []scene{
		{"a dance by its events", "", nil, `0s dance_started {"from":"idle"}; 10s dance_ended {"to":"idle"}`, "10s say That was fun!"},
		{"a dance by its state", "", nil, "0s mode dance; 10s mode idle", "10s say That was fun!"},
		{"by both it is one", "", nil, "0s mode dance; 0s dance_started {}; 10s dance_ended {}; 10s mode idle", "10s say That was fun!"},
		{"an end without a dance", "", nil, "0s dance_ended {}; 1s mode idle", ""},
		{"too short", "", nil, "0s dance_started {}; 2.9s dance_ended {}", ""},
		{"danced again soon", "", nil, "0s dance_started {}; 10s dance_ended {}; 20s dance_started {}; 30s dance_ended {}", "10s say That was fun!"},
		{"danced again", "", nil, "0s dance_started {}; 10s dance_ended {}; 20s dance_started {}; 70s dance_ended {}",
			"10s say That was fun!; 1m10s say That was fun!"},
		{"somebody talks with it", "", nil, "0s dance_started {}; 5s heard x; 10s dance_ended {}", ""},
		{"at night", "23:00", nightly, "0s dance_started {}; 10s dance_ended {}", ""},
		{"it was silent for too long", "", nil, "0s dance_started {}; 400s sound left", ""},
		{"it falls asleep", "", nil, "0s mode dance; 10s mode sleep", ""},
		{"with nothing to say", "", func(t *Tuning) { t.Dance.Text = "" }, "0s dance_started {}; 10s dance_ended {}", ""},
	})
}
