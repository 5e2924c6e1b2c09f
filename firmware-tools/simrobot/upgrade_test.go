package simrobot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perch/must"
)

// application returns an application for a chip, with one segment: its description.
func application(version string, chip byte) string {
	image := Image(version, 0)[:24+8+256]
	image[12] = chip
	return string(Seal(image))
}

// upgrader answers check-ins with an offer until the version is running, and
// downloads with a file.
type upgrader struct {
	offer   string
	file    string
	status  int
	chunked bool
	always  bool     // offers what runs, too, by force
	seen    []string // versions that checked in
	agent   []string // of the downloads
}

func (u *upgrader) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(status int, text string) *http.Response {
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text))}
	}
	if r.Method == http.MethodGet {
		u.agent = append(u.agent, strings.Join(r.Header.Values("User-Agent"), ""))
		a := answer(max(u.status, 200), u.file)
		if u.chunked {
			a.ContentLength = -1
		}
		return a, nil
	}
	body, _ := io.ReadAll(r.Body)
	_, version, _ := strings.Cut(r.Header.Get("User-Agent"), "/")
	u.seen = append(u.seen, version)
	if !bytes.Contains(body, fmt.Appendf(nil, `"version":"%s"`, version)) {
		return nil, errors.New("body and header tell of two versions")
	}
	offer := fmt.Sprintf(`,"firmware":{"version":"%s","url":"http://192.0.2.7:8003/f.bin"}}`, u.offer)
	if u.always {
		offer = strings.Replace(offer, `"}}`, `","force":1}}`, 1)
	}
	return answer(200, strings.TrimSuffix(goodReply, "}")+offer), nil
}

// notes returns an observer that records upgrades.
func notes(to *[]string) func(Observation) {
	return func(h Observation) {
		switch h := h.(type) {
		case Upgraded:
			*to = append(*to, "runs "+h.Version)
		case NotUpgraded:
			*to = append(*to, "keeps: "+h.Why)
		case RolledBack:
			*to = append(*to, "back to "+h.To)
		}
	}
}

func TestUpgrades(t *testing.T) {
	for _, c := range []struct {
		name  string
		u     upgrader
		o     Options
		notes []string // their beginnings
		seen  []string
	}{
		{"it is installed", upgrader{offer: "1.3", file: application("1.3", 9)}, Options{}, []string{"runs 1.3"}, []string{"1.2.4", "1.3"}},
		{"it never checks in", upgrader{offer: "1.3", file: application("1.3", 9)}, Options{Crashes: true},
			[]string{"runs 1.3", "back to 1.2.4", "runs 1.3", "back to 1.2.4", "runs 1.3", "back to 1.2.4", "runs 1.3", "back to 1.2.4", "runs 1.3",
				"back to 1.2.4"},
			[]string{"1.2.4", "1.2.4", "1.2.4", "1.2.4", "1.2.4", "1.2.4"}},
		{"nothing is newer", upgrader{offer: "1.2.4", file: application("1.2.4", 9)}, Options{}, nil, []string{"1.2.4"}},
		{"not found", upgrader{offer: "1.3", status: 404}, Options{}, []string{"keeps: download: status 404"}, []string{"1.2.4"}},
		{"chunked", upgrader{offer: "1.3", file: application("1.3", 9), chunked: true}, Options{},
			[]string{"keeps: download: failed to get content length"}, []string{"1.2.4"}},
		{"cut short", upgrader{offer: "1.3", file: application("1.3", 9)[:300]}, Options{}, []string{"keeps: the file ends"}, []string{"1.2.4"}},
		{"another chip", upgrader{offer: "1.3", file: application("1.3", 5)}, Options{}, []string{"keeps: the image is built for esp32c3"},
			[]string{"1.2.4"}},
		{"too large", upgrader{offer: "1.3", file: strings.Repeat("x", slotSize+1)}, Options{}, []string{"keeps: download: 5177345 bytes"},
			[]string{"1.2.4"}},
	} {
		var got []string
		c.o.Upgrades, c.o.OTA, c.o.Observe = true, "http://192.0.2.7:8003/xiaozhi/ota/", notes(&got)
		r := newRobot(t, c.o)
		r.http.Transport = &c.u
		err := r.Boot(t.Context())
		if _, crashed := errors.AsType[*Crash](err); crashed != c.o.Crashes || err != nil && !crashed {
			t.Errorf("%s: %v", c.name, err)
		}
		same := len(got) == len(c.notes)
		for i := range min(len(got), len(c.notes)) {
			same = same && strings.HasPrefix(got[i], c.notes[i])
		}
		if !same || !slices.Equal(c.u.seen, c.seen) || strings.Join(c.u.agent, "") != "" {
			t.Errorf("%s: %q, seen %q, %q", c.name, got, c.u.seen, c.u.agent)
		}
	}
}

func TestConfirmedUpgradeIsStored(t *testing.T) {
	var got []string
	u := &upgrader{offer: "1.3", file: application("1.3", 9)}
	o := Options{Upgrades: true, OTA: "http://192.0.2.7:8003/xiaozhi/ota/", FlashFile: filepath.Join(t.TempDir(), "flash.json"), Observe: notes(&got)}
	boot := func() {
		r := newRobot(t, o)
		r.http.Transport = u
		must.Succeed(t, r.Boot(t.Context()))
	}
	boot()
	boot()
	r := newRobot(t, o)
	r.flash.Pending = true // as if the answer had not come
	must.Succeed(t, r.flash.save())
	u.offer = "1.2"
	boot()
	if !slices.Equal(got, []string{"runs 1.3", "back to 1.2.4"}) || !slices.Equal(u.seen, []string{"1.2.4", "1.3", "1.3", "1.2.4"}) {
		t.Errorf("%q, seen %q", got, u.seen)
	}
}
