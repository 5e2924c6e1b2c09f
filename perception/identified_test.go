package perception

import "testing"

func TestIdentifiedRefresher(t *testing.T) {
	act(t, []string{"identified"}, []scene{
		{"a face without a name", "", nil, "0s face; 60s .", ""},
		{"a name", "", nil, "0s known Ann; 10s .", "3s mark; 6s mark; 9s mark"},
		{"not for ever", "", nil, "0s known Ann; 100s .",
			"3s mark; 6s mark; 9s mark; 12s mark; 15s mark; 18s mark; 21s mark; 24s mark; 27s mark; 30s mark"},
		{"reported again", "", nil, "0s known Ann; 2s known Ann; 4s .", "3s mark"},
		{"the face has left", "", nil, "0s known Ann; 4s lost; 60s .", "3s mark; 6s mark"},
		{"the face has left for a moment", "", nil, "0s known Ann; 4s lost; 5.5s face; 10s .", "3s mark; 6s mark; 9s mark"},
		{"another face", "", nil, "0s known Ann; 4s lost; 7s face; 20s .", "3s mark; 6s mark"},
		{"at night", "23:00", nightly, "0s known Ann; 10s .", ""},
		{"it dances", "", nil, "0s known Ann; 1s dance_started {}; 10s .", ""},
		{"the channel is closed", "", nil, "0s known Ann; 1s offline; 10s .", ""},
		{"in a talk", "", nil, "0s heard x; 1s known Ann; 5s .", "4s mark"},
	})
}
