package device_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perch/device"
)

// model is a simple implementation of a registry, with which the test compares the real one. A token is
// valid for the robot and client to which it was issued, while that client is bound and the robot's epoch
// is the same.
type model struct {
	epoch  map[device.ID]int
	bound  map[device.ID]*device.Client
	named  map[device.ID]bool
	issued map[string]holder // key: token

	codes   map[string]given     // all codes since the start; key: code
	current map[device.ID]string // the code that each robot shows
	wrong   []time.Time
}

type given struct {
	holder
	at time.Time // when the code was first returned
}

// adopts returns the robot and client that a code adopts, or the expected error.
func (m *model) adopts(code string, now time.Time) (who holder, err error) {
	for len(m.wrong) > 0 && now.Sub(m.wrong[0]) >= time.Minute {
		m.wrong = m.wrong[1:]
	}
	g, ever := m.codes[code]
	switch {
	case len(m.wrong) >= 10:
		return who, device.ErrTries
	case !ever || m.current[g.id] != code || now.Sub(g.at) >= device.CodeLife:
		m.wrong = append(m.wrong, now)
		return who, device.ErrCode
	}
	return g.holder, nil
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

func TestAdmitTakesExactlyWhatWasIssued(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept := newTable()
		adoption := rapid.SampledFrom([]device.Adoption{device.AdoptOpen, device.AdoptCode}).Draw(t, "adoption")
		r := device.NewRegistry(key, adoption, kept)
		m := &model{epoch: map[device.ID]int{}, bound: map[device.ID]*device.Client{}, named: map[device.ID]bool{},
			issued: map[string]holder{}, codes: map[string]given{},
			current: map[device.ID]string{}}
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
				robot, err := r.Adopt(string(id), now)
				m.named[id] = m.named[id] || err == nil
				switch {
				case err != nil:
				case m.bound[id] == nil:
					m.bound[id] = &robot.Client
					delete(m.current, id)
				case *m.bound[id] != robot.Client:
					t.Fatalf("%s is adopted by its id, and is %+v, want %+v", id, robot.Client, *m.bound[id])
				}
			},
			"replace": func(t *rapid.T) {
				id := anyID(t)
				if robot, err := r.Replace(id, ""); err == nil {
					m.epoch[id]++
					m.bound[id], m.named[id] = &robot.Client, false
					delete(m.current, id)
				}
			},
			"adopt by code": func(t *rapid.T) {
				ever := append(slices.Sorted(maps.Keys(m.codes)), "000000")
				code := rapid.SampledFrom(ever).Draw(t, "code")
				who, want := m.adopts(code, now)
				robot, err := r.Adopt(code, now)
				if !errors.Is(err, want) || err == nil && (robot.ID != who.id || robot.Client != who.client) {
					t.Fatalf("%s adopts %s %+v (%v), want %+v (%v)", code, robot.ID, robot.Client, err, who, want)
				}
				if err == nil {
					m.bound[who.id], m.named[who.id] = &who.client, true
					delete(m.current, who.id)
				}
			},
			"forget": func(t *rapid.T) {
				id := anyID(t)
				if r.Forget(id) == nil {
					m.epoch[id]++
					m.bound[id], m.named[id] = nil, false
					delete(m.current, id)
				}
			},
			"restart": func(*rapid.T) {
				r = device.NewRegistry(key, adoption, kept)
				m.codes, m.current, m.wrong = map[string]given{}, map[device.ID]string{}, nil
			},
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

// shows records the code that a check-in returned, and fails the test if the code is another client's valid
// code, or an expired code of the same client.
func (m *model) shows(t *rapid.T, c device.CheckIn, code string, now time.Time) {
	if delete(m.current, c.ID); code == "" {
		return
	}
	g, again := m.codes[code]
	same, good := g.id == c.ID && g.client == c.Client, now.Sub(g.at) < device.CodeLife
	switch {
	case !again, !same && !good, !same && m.current[g.id] != code: // a new code, or by chance an invalid one of another client
		m.codes[code] = given{holder{id: c.ID, client: c.Client}, now}
	case !same || !good:
		t.Fatalf("%s was given to %+v, and is given to %s %+v", code, g, c.ID, c.Client)
	}
	m.current[c.ID] = code
}

func (m *model) checkIn(t *rapid.T, r *device.Registry, c device.CheckIn, now time.Time, adoption device.Adoption) {
	robot, a := r.CheckIn(c, now)
	if m.bound[c.ID] == nil && adoption == device.AdoptOpen {
		m.bound[c.ID] = &c.Client
	}
	mine := m.bound[c.ID] != nil && *m.bound[c.ID] == c.Client
	if (a.Token != "") != mine {
		t.Fatalf("%s %+v got %+v, want a token: %t", c.ID, c.Client, a, mine)
	}
	if (a.Code != "") == mine {
		t.Fatalf("%s %+v got %+v, want a code: %t", c.ID, c.Client, a, !mine)
	}
	stranger := mine && !m.named[c.ID] // a check-in of a stranger's client does not change the codes of other clients
	if !stranger {
		m.shows(t, c, a.Code, now)
	}
	if r.Code(robot, now) != a.Code && !stranger {
		t.Fatalf("the owner gets the code %q, not %q", r.Code(robot, now), a.Code)
	}
	if fmt.Sprint(robot.Epoch) != fmt.Sprint(m.epoch[c.ID]) {
		t.Fatalf("epoch %d, want %d", robot.Epoch, m.epoch[c.ID])
	}
	if a.Token != "" {
		m.issued[a.Token] = holder{c.ID, c.Client, m.epoch[c.ID]}
	}
}
