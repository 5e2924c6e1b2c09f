package perception

import "testing"

func TestSleeper(t *testing.T) {
	sleeps := func(t *Tuning) { nightly(t); t.Quiet.Sleep = true }
	act(t, []string{"quiet"}, []scene{
		{"evening and morning", "21:59", sleeps, "0s mode idle; 10h .", "1m0s state sleep; 9h1m0s state idle"},
		{"begun at night", "23:00", sleeps, "0s mode idle; 10m .", "0s state sleep"},
		{"a talk is not disturbed", "21:59", sleeps, "30s heard x; 90s ends; 3m .", "2m0s state sleep"},
		{"it slept before, and sleeps on", "21:59", sleeps, "0s mode sleep; 5h mode sleep; 10h .", ""},
		{"somebody has woken it at night", "23:00", sleeps, "1s mode sleep; 7h59m50s mode idle; 8h5m .", "0s state sleep"},
		{"the channel opens at night", "21:00", sleeps, "0s offline; 2h online; 3h .", "2h0m0s state sleep"},
		{"not asked for", "21:59", nightly, "0s mode idle; 10h .", ""},
	})
}
