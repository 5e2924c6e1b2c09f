package device_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perch/device"
)

// model is what a registry should do, said with maps: a token is good for the
// robot and client it was issued to, while that client is the bound one and
// nothing was forgotten since.
type model struct {
	epoch  map[device.ID]int
	bound  map[device.ID]*device.Client
	issued map[string]holder // by token
}

type holder struct {
	id     device.ID
	client device.Client
	epoch  int
}

func (m *model) admits(id device.ID, c device.Client, token string) bool {
	h, issued := m.issued[token]
	return issued && h == (holder{id, c, m.epoch[id]}) && m.bound[id] != nil && *m.bound[id] == c
}

// TestAdmitTakesExactlyWhatWasIssued drives a registry through any history of
// check-ins, adoptions, forgettings and restarts.
func TestAdmitTakesExactlyWhatWasIssued(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept := newTable()
		adoption := rapid.SampledFrom([]device.Adoption{device.AdoptOpen, device.AdoptAsk}).Draw(t, "adoption")
		r := device.NewRegistry(key, adoption, kept)
		m := &model{epoch: map[device.ID]int{}, bound: map[device.ID]*device.Client{}, issued: map[string]holder{}}
		ids, clients := []device.ID{robotA, robotB}, []string{"", "one", "two"}
		now := noon
		anyID := func(t *rapid.T) device.ID { return rapid.SampledFrom(ids).Draw(t, "id") }
		t.Repeat(map[string]func(*rapid.T){
			"check in": func(t *rapid.T) {
				id, client := anyID(t), rapid.SampledFrom(clients).Draw(t, "client")
				now = now.Add(time.Duration(rapid.IntRange(0, 1200).Draw(t, "seconds")) * time.Second)
				m.checkIn(t, r, from(id, client), now, adoption)
			},
			"adopt": func(t *rapid.T) {
				id := anyID(t)
				if robot, err := r.Adopt(string(id)); err == nil {
					m.bound[id] = &robot.Client
				}
			},
			"forget": func(t *rapid.T) {
				id := anyID(t)
				if r.Forget(id) == nil {
					m.epoch[id]++
					m.bound[id] = nil
				}
			},
			"restart": func(*rapid.T) { r = device.NewRegistry(key, adoption, kept) },
			"": func(t *rapid.T) {
				for token, h := range m.issued {
					for _, id := range ids {
						for _, c := range clients {
							_, err := r.Admit(id, device.NewClient(c), token)
							if want := m.admits(id, device.NewClient(c), token); (err == nil) != want {
								t.Fatalf("the token of %+v for %s %q: %v, want admitted %t", h, id, c, err, want)
							}
						}
					}
				}
			},
		})
	})
}

func (m *model) checkIn(t *rapid.T, r *device.Registry, c device.CheckIn, now time.Time, adoption device.Adoption) {
	robot, a, err := r.CheckIn(c, now)
	if err != nil {
		t.Fatal(err)
	}
	if m.bound[c.ID] == nil && adoption == device.AdoptOpen {
		m.bound[c.ID] = &c.Client
	}
	mine := m.bound[c.ID] != nil && *m.bound[c.ID] == c.Client
	if (a.Token != "") != mine {
		t.Fatalf("%s %+v got %+v, want a token: %t", c.ID, c.Client, a, mine)
	}
	if want := m.bound[c.ID] == nil; (a.Code != "") != want {
		t.Fatalf("%s %+v got %+v, want a code: %t", c.ID, c.Client, a, want)
	}
	if fmt.Sprint(robot.Epoch) != fmt.Sprint(m.epoch[c.ID]) {
		t.Fatalf("epoch %d, want %d", robot.Epoch, m.epoch[c.ID])
	}
	if a.Token != "" {
		m.issued[a.Token] = holder{c.ID, c.Client, m.epoch[c.ID]}
	}
}
