package perception

import "testing"

func TestFaceLostAborter(t *testing.T) {
	act(t, []string{"greeter", "face_lost"}, []scene{
		{"the face leaves while it is greeted", "", nil, "0s face; 0.2s speaks; 2s lost; 20s .", "0s say Hi!; 6s abort"},
		{"the face comes back", "", nil, "0s face; 0.2s speaks; 2s lost; 5.9s face; 20s .", "0s say Hi!"},
		{"it comes back too late", "", nil, "0s face; 0.2s speaks; 2s lost; 6.1s face; 20s .", "0s say Hi!; 6s abort"},
		{"the greeting is over by then", "", nil, "0s face; 0.2s speaks; 2s lost; 3s ends; 20s .", "0s say Hi!"},
		{"nothing was said yet", "", nil, "0s face; 2s lost; 20s .", "0s say Hi!"},
		{"it says something else by then", "", nil, "0s face; 0.2s speaks; 2s lost; 3s ends; 5s speaks; 20s .", "0s say Hi!"},
		{"nobody was greeted", "", func(t *Tuning) { t.Greeter.Hello = "" }, "0s face; 0.2s speaks; 2s lost; 20s .", ""},
		{"long after the greeting", "", nil, "0s face; 0.2s speaks; 12.1s lost; 20s .", "0s say Hi!"},
		{"just in time", "", nil, "0s face; 0.2s speaks; 12s lost; 20s .", "0s say Hi!; 16s abort"},
		{"somebody has answered", "", nil, "0s face; 0.2s speaks; 1s ends; 1.5s heard hello; 2s speaks; 3s lost; 20s .", "0s say Hi!"},
		{"somebody answers while it waits", "", nil, "0s face; 0.2s speaks; 2s lost; 3s ends; 4s heard hello; 5s speaks; 20s .", "0s say Hi!"},
		{"the channel closes", "", nil, "0s face; 0.2s speaks; 2s lost; 3s offline; 20s .", "0s say Hi!"},
		{"at night it is made quiet too", "20:59", func(t *Tuning) { nightly(t); t.Quiet.Hours.From = 20*hour + 59*minute + minute/60*3 },
			"0s face; 0.2s speaks; 2s lost; 20s .", "0s say Hi!; 6s abort"},
		{"a named one leaves", "", nil, "0s known Ann; 0.2s speaks; 2s lost; 20s .", "0s say Oh, it's Ann!; 0s mark; 6s abort"},
	})
}
