package perception

import "testing"

func TestPurrPlayer(t *testing.T) {
	act(t, []string{"purr"}, []scene{
		{"stroked", "", nil, "0s pet", "0s play purr"},
		{"stroked again at once", "", nil, "0s pet; 1s head_pet_ended {}; 4.9s pet", "0s play purr"},
		{"stroked again", "", nil, "0s pet; 5s pet", "0s play purr; 5s play purr"},
		{"while it speaks", "", nil, "0s speaks; 1s pet", ""},
		{"after it has spoken", "", nil, "0s speaks; 1s ends; 2s pet", "2s play purr"},
		{"in a talk", "", nil, "0s heard x; 1s pet", ""},
		{"at night", "23:00", nightly, "0s pet", ""},
		{"a night does not count", "06:59", nightly, "59s pet; 60s pet", "1m0s play purr"},
		{"asleep by a good night, a hand wakes it", "", nil, "0s goodnight; 1s pet", "1s play purr"},
		{"in its own sleep", "", nil, "0s mode sleep; 1s pet", ""},
		{"while it dances", "", nil, "0s dance_started {}; 1s pet", ""},
		{"the channel is closed", "", nil, "0s offline; 1s pet", ""},
		{"with another sound", "", func(t *Tuning) { t.Purr.Sound = "meow" }, "0s pet", "0s play meow"},
	})
}
