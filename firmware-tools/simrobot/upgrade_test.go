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

// application returns a firmware image for a chip. Its only segment contains the description of the
// application.
func application(version string, chip byte) string {
	image := Image(version, 0)[:24+8+256]
	image[12] = chip
	return string(Seal(image))
}

// upgrader is an http.RoundTripper that offers firmware at each check-in, and serves the image.
type upgrader struct {
	offer   string   // offered version
	file    string   // image
	status  int      // status of the responses to downloads; 0 for 200
	chunked bool     // downloads have no Content-Length
	always  bool     // the offer forces an upgrade even if the version is not newer
	seen    []string // versions of the firmware that has checked in
	agent   []string // User-Agent of each download
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

// notes returns a function for Options.Observe that appends a description of each upgrade to *to.
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
		notes []string // beginnings of the expected notes
		seen  []string // expected upgrader.seen
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
	r.flash.Pending = true // as if the robot had received no response to its check-in
	must.Succeed(t, r.flash.save())
	u.offer = "1.2"
	boot()
	if !slices.Equal(got, []string{"runs 1.3", "back to 1.2.4"}) || !slices.Equal(u.seen, []string{"1.2.4", "1.3", "1.3", "1.2.4"}) {
		t.Errorf("%q, seen %q", got, u.seen)
	}
}
