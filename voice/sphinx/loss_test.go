package sphinx

import "testing"

func TestLoss(t *testing.T) {
	free := []span{{silence, 0, 9, -100}, {"p_S", 10, 29, -200}, {"p_T", 30, 49, -200}}
	tests := map[string]struct {
		words []span
		want  float64
	}{
		"as good as phones":       {[]span{{"stop", 0, 49, -500}}, 0},
		"better than phones":      {[]span{{"stop", 0, 49, -400}}, -2},
		"worse all along":         {[]span{{"stop", 0, 49, -1100}}, 12 + 600.0/60},
		"silence is no speech":    {[]span{{silence, 0, 9, -100}, {"stop", 10, 49, -800}}, 10 + 400.0/60},
		"a rule's end is no word": {[]span{{"stop", 0, 49, -500}, {"(NULL)", 49, 49, 0}}, 0},
		// The total is the same as in the first case, but one word was not said.
		"one word was not said":         {[]span{{"go", 0, 24, 350}, {"stop", 25, 49, -850}}, 600.0 / 60},
		"frames counted from elsewhere": {[]span{{"stop", 1000, 1049, -500}}, 0},
		"only silence":                  {[]span{{silence, 0, 49, -500}}, 0},
		"no words":                      {nil, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := loss(test.words, free); got < test.want-1e-9 || got > test.want+1e-9 {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
