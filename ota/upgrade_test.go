package ota_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/device"
	"perch/event"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/ota"
)

// offer is the firmware section of a reply.
type offer struct {
	Version string
	URL     string
	Force   int
}

// appliance is a fixture with a catalogue.
type appliance struct {
	*catalogue
	*fixture
	news *event.Reader
}

func newAppliance(t *testing.T, change ...func(*ota.FirmwareOptions)) *appliance {
	s := newCatalogue(t, change...)
	return &appliance{s, newFixture(t, device.AdoptOpen, func(o *ota.Options) { o.Firmware, o.Bus = s.Firmware, s.bus }), s.bus.Read()}
}

// runs sends the check-in of an adopted robot that runs a version, and returns the offer. change holds pairs of
// texts to replace in the body.
func (l *appliance) runs(t *testing.T, mac, version string, change ...string) offer {
	t.Helper()
	header := headers()
	header.Set("Device-Id", mac)
	header.Set("Client-Id", "client of "+mac)
	elf := sha256.Sum256([]byte(version))
	body := strings.Replace(strings.Replace(whole, `"version":"1.2.4"`, fmt.Sprintf(`"version":%q`, version), 1),
		"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", fmt.Sprintf("%x", elf), 1)
	body = strings.Replace(body, `"size":16384}`,
		`"size":16384},{"label":"ota_0","type":0,"subtype":16,"address":131072,"size":5177344},{"label":"ota_1","type":0,"subtype":17,"address":5308416,"size":5177344}`, 1)
	body = strings.NewReplacer(change...).Replace(body)
	w := l.ask(http.MethodPost, "/xiaozhi/ota/", "perch.local:8003", header, body)
	if flash := mustRead(t, w); flash.token != "" && l.adopts(t, mac) {
		w = l.ask(http.MethodPost, "/xiaozhi/ota/", "perch.local:8003", header, body)
	}
	var reply struct{ Firmware offer }
	must.Succeed(t, json.Unmarshal(w.Body.Bytes(), &reply))
	return reply.Firmware
}

// adopts adopts a robot, and reports whether the robot was not adopted before.
func (l *appliance) adopts(t *testing.T, mac string) bool {
	t.Helper()
	id := must.Value(device.ParseID(mac))(t)
	if l.robots.Trusts(id) {
		return false
	}
	l.adopt(t, mac)
	return true
}

// fetch downloads an image as the firmware does, with a GET request without headers. header adds pairs of names
// and values.
func (l *appliance) fetch(o offer, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, strings.TrimPrefix(o.URL, "http://perch.local:8003"), nil)
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, r)
	return w
}

// since returns descriptions of the firmware events since the last call.
func (l *appliance) since(t *testing.T) (words []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	l.bus.Publish("", "", event.Misheard{})
	for {
		e := must.Value(l.news.Next(ctx))(t)
		switch e := e.Event.(type) {
		case event.Misheard:
			return words
		case event.FirmwareProgress:
			if e.Bytes == e.Size {
				words = append(words, "sent "+e.Version)
			}
		case event.FirmwareOffered, event.FirmwareInstalled, event.FirmwareRolledBack, event.FirmwareFailed:
			words = append(words, strings.TrimPrefix(event.Kind(e), "firmware_"))
		}
	}
}

const mac = "a0:b1:c2:d3:e4:f5"

// TestAnUpgrade follows an upgrade from adding the image to the confirmation by the robot.
func TestAnUpgrade(t *testing.T) {
	l := newAppliance(t)
	file := simrobot.Image("1.3.0", 300_000)
	i := l.add(t, file, board)
	none := offer{Version: "0"}
	if got := l.runs(t, mac, "1.2.4"); got != none {
		t.Fatalf("before there is a rollout: %+v", got)
	}
	must.Value(l.Plan(i.SHA256, ota.Rollout{Percent: 100, Auto: true}))(t)
	o := l.runs(t, mac, "1.2.4")
	if o.Version != "1.3.0" || o.Force != 0 || !strings.HasPrefix(o.URL, "http://perch.local:8003/xiaozhi/ota/firmware/"+i.SHA256+".bin?r=") {
		t.Fatalf("it is offered %+v", o)
	}
	if u := l.Update("a0b1c2d3e4f5"); u.Installed != "1.2.4" || u.Latest != "1.3.0" || u.Stage != ota.Offered {
		t.Errorf("shown as %+v", u)
	}
	w := l.fetch(o)
	if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), file) || w.Header().Get("Content-Length") != fmt.Sprint(len(file)) ||
		w.Header().Get("Content-Encoding") != "" {
		t.Errorf("downloaded: %d, %d bytes, %v", w.Code, w.Body.Len(), w.Header())
	}
	if u := l.Update("a0b1c2d3e4f5"); u.Stage != ota.Downloaded || u.Bytes != int64(len(file)) || u.Size != u.Bytes {
		t.Errorf("shown as %+v", u)
	}
	if got := l.runs(t, mac, "1.3.0"); got != none {
		t.Errorf("the answer that confirms it offers %+v", got)
	}
	if u := l.Update("a0b1c2d3e4f5"); u.Installed != "1.3.0" || u.Latest != "1.3.0" || u.Stage != "" {
		t.Errorf("shown as %+v", u)
	}
	if got := l.runs(t, mac, "1.3.0"); got != none {
		t.Errorf("it is offered %+v", got)
	}
	if got := l.since(t); !slices.Equal(got, []string{"offered", "sent 1.3.0", "installed"}) {
		t.Errorf("the bus tells %q", got)
	}
	if trial := l.List()[0].Robots["a0b1c2d3e4f5"]; trial.Stage != ota.Installed {
		t.Errorf("the catalogue tells %+v", trial)
	}
}

// TestAnImageThatNeverChecksInAgain checks an image with which robots do not check in, because their boot loader
// returns to the previous image. The image fails after three times, and the rollout stops at the second robot.
func TestAnImageThatNeverChecksInAgain(t *testing.T) {
	l := newAppliance(t)
	i := l.rollOut(t, simrobot.Image("1.3.0", 0))
	l.runs(t, mac, "1.2.4")
	for range 3 {
		if w := l.fetch(l.runs(t, mac, "1.2.4")); w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
	}
	if o := l.runs(t, mac, "1.2.4"); o.URL != "" {
		t.Errorf("a fourth time it is offered %+v", o)
	}
	want := []string{"offered", "sent 1.3.0", "rolled_back", "offered", "sent 1.3.0", "rolled_back", "offered", "sent 1.3.0", "rolled_back", "failed"}
	if got := l.since(t); !slices.Equal(got, want) {
		t.Errorf("the bus tells %q", got)
	}
	if len(l.notified) != 0 || l.List()[0].Stopped != "" {
		t.Errorf("one robot stops it: %q", l.notified)
	}
	const second, third = "a0:b1:c2:d3:e4:01", "a0:b1:c2:d3:e4:02"
	l.runs(t, third, "1.2.4")
	l.runs(t, second, "1.2.4")
	l.fetch(l.runs(t, second, "1.2.4"))
	if o := l.runs(t, second, "1.2.4"); o.URL == "" {
		t.Error("one rollback is enough to give a robot up")
	}
	if len(l.notified) != 1 || l.notified[0] != "1.3.0: 2 of 2" || l.List()[0].Failed != 2 {
		t.Errorf("the owner is told %q", l.notified)
	}
	l.runs(t, second, "1.2.4")
	if o := l.runs(t, third, "1.2.4"); o.URL != "" {
		t.Errorf("a third robot is offered %+v", o)
	}
	if len(l.notified) != 1 {
		t.Errorf("the owner is told %q", l.notified)
	}
	l.catalogue.open(t)
	if l.List()[0].Stopped == "" {
		t.Error("after a restart it goes on")
	}
	if r, err := l.Plan(i.SHA256, ota.Rollout{Percent: 100, Auto: true}); err != nil || r.Stopped != "" || len(r.First) != 0 {
		t.Errorf("begun anew it is %+v (%v)", r, err)
	}
}

func TestLaterFailuresDoNotStopARollout(t *testing.T) {
	l := newAppliance(t)
	l.rollOut(t, simrobot.Image("1.3.0", 0))
	robot := func(n int) string { return fmt.Sprintf("a0:b1:c2:d3:e4:%02x", n) }
	for n := range 9 {
		l.runs(t, robot(n), "1.2.4")
		l.fetch(l.runs(t, robot(n), "1.2.4"))
		if n < 4 {
			l.runs(t, robot(n), "1.3.0")
		}
	}
	for n := 4; n < 9; n++ {
		l.runs(t, robot(n), "1.2.4")
	}
	if r := l.List()[0]; r.Stopped != "" || len(r.First) != 5 || len(l.notified) != 0 {
		t.Errorf("%+v, %q", r.Record, l.notified)
	}
}

func TestPausedRolloutResumesWhereItWas(t *testing.T) {
	l := newAppliance(t)
	i := l.rollOut(t, simrobot.Image("1.3.0", 0))
	plan := l.List()[0].Rollout
	const second = "a0:b1:c2:d3:e4:01"
	l.runs(t, mac, "1.2.4")
	l.runs(t, second, "1.2.4")
	if o := l.runs(t, mac, "1.2.4"); o.URL == "" {
		t.Fatal("it is not offered before")
	}
	paused := plan
	paused.Paused = true
	if r, err := l.Plan(i.SHA256, paused); err != nil || !r.Rollout.Paused || r.Rollout.Percent != plan.Percent || len(r.First) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, robot := range []string{mac, second} {
		if o := l.runs(t, robot, "1.2.4"); o.URL != "" {
			t.Errorf("paused, %s is offered %+v", robot, o)
		}
	}
	must.Value(l.Install("a0b1c2d3e401", i.SHA256, time.Now()))(t)
	if o := l.runs(t, second, "1.2.4"); o.URL == "" {
		t.Error("paused, what its owner wants on one robot is not offered")
	}
	if r, err := l.Plan(i.SHA256, plan); err != nil || !slices.Contains(r.First, "a0b1c2d3e4f5") {
		t.Errorf("going on it is %+v, %v", r, err)
	}
	if o := l.runs(t, mac, "1.2.4"); o.URL == "" {
		t.Error("going on, it is not offered")
	}
	paused.Percent = 50
	if r, err := l.Plan(i.SHA256, paused); err != nil || len(r.First) != 0 {
		t.Errorf("another plan begins anew, and it is %+v, %v", r, err)
	}
	l.catalogue.open(t)
	if r := l.List()[0].Rollout; !r.Paused || r.Percent != 50 {
		t.Errorf("after a restart it is %+v", r)
	}
}

func TestPausedRolloutStaysStopped(t *testing.T) {
	l := newAppliance(t)
	i := l.rollOut(t, simrobot.Image("1.3.0", 0))
	for n := range 2 {
		robot := fmt.Sprintf("a0:b1:c2:d3:e4:%02x", n)
		l.runs(t, robot, "1.2.4")
		l.fetch(l.runs(t, robot, "1.2.4"))
		l.runs(t, robot, "1.2.4")
	}
	plan := l.List()[0].Rollout
	for _, pause := range []bool{true, false} {
		plan.Paused = pause
		if r, err := l.Plan(i.SHA256, plan); err != nil || r.Stopped == "" || len(r.First) != 2 {
			t.Errorf("paused %v: %+v, %v", pause, r, err)
		}
	}
	if r, err := l.Plan(i.SHA256, plan); err != nil || r.Stopped != "" {
		t.Errorf("begun anew: %+v, %v", r, err)
	}
}

func TestCatalogueChangesArePublished(t *testing.T) {
	l := newAppliance(t)
	changes := func() (ids []string) {
		t.Helper()
		l.bus.Publish("", "", event.Misheard{})
		for {
			switch e := must.Value(l.news.Next(t.Context()))(t).Event.(type) {
			case event.Misheard:
				return ids
			case event.Changed:
				if e.What != "firmware" {
					t.Errorf("it is said that %+v changed", e)
				}
				ids = append(ids, e.ID)
			}
		}
	}
	l.runs(t, mac, "1.2.4")
	changes()
	i := l.add(t, simrobot.Image("1.3.0", 0), board)
	for name, do := range map[string]func() error{
		"planned": func() error { _, err := l.Plan(i.SHA256, ota.Rollout{Percent: 100}); return err },
		"chosen":  func() error { _, err := l.Install("a0b1c2d3e4f5", i.SHA256, time.Now()); return err },
	} {
		changes()
		must.Succeed(t, do())
		if got := changes(); !slices.Equal(got, []string{i.SHA256}) {
			t.Errorf("%s: %q changed", name, got)
		}
	}
	must.Succeed(t, l.Remove(i.SHA256))
	if got := changes(); !slices.Equal(got, []string{i.SHA256}) {
		t.Errorf("removed: %q changed", got)
	}
	l.add(t, simrobot.Image("1.3.0", 0), board)
	if got := changes(); !slices.Equal(got, []string{i.SHA256}) {
		t.Errorf("published: %q changed", got)
	}
	if _, err := l.Plan("none", ota.Rollout{}); err == nil || l.Remove("none") == nil || len(changes()) != 0 {
		t.Error("a refusal is published")
	}
}

// TestWhichRobotsAreOfferedNothing checks which facts of a robot prevent an offer.
func TestWhichRobotsAreOfferedNothing(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  []string
		offered bool
	}{
		{"a Stack-chan", nil, true},
		{"one whose body cannot be read", []string{"home", `Bob"s`}, true},
		{"another chip", []string{`"esp32s3"`, `"esp32c3"`}, false},
		{"an older chip", []string{`"revision":2`, `"revision":-1`}, true},
		{"a small partition", []string{"5177344", "200"}, false},
		{"no partitions for updates", []string{`"subtype":16`, `"subtype":0`, `"subtype":17`, `"subtype":0`}, false},
		{"another board", []string{`"name":"m5stack-stack-chan"`, `"name":"m5stack-core-s3"`}, false},
		{"numbers in another form", []string{"5177344", `"0x4f0000"`}, true},
	} {
		l := newAppliance(t)
		l.rollOut(t, simrobot.Image("1.3.0", 0))
		l.runs(t, mac, "1.2.4", c.change...)
		if o := l.runs(t, mac, "1.2.4", c.change...); (o.URL != "") != c.offered {
			t.Errorf("%s: offered %+v", c.name, o)
		}
	}
}

// TestTheWrongBoard checks that an image is refused if none of the robots with the declared board could run it.
func TestTheWrongBoard(t *testing.T) {
	for name, change := range map[string][]string{
		"chip":      {`"esp32s3"`, `"esp32"`},
		"partition": {"5177344", "4096"},
	} {
		l := newAppliance(t)
		l.runs(t, mac, "1.2.4", change...)
		_, err := l.Add(t.Context(), bytes.NewReader(simrobot.Image("1.3.0", 5000)), ota.Upload{Boards: []string{board}}, time.Now())
		if codeOf(err) != "wrong_board" || len(l.files(t)) != 0 {
			t.Errorf("%s: %v", name, err)
		}
		l.runs(t, "a0:b1:c2:d3:e4:01", "1.2.4") // another robot of the board could run the image
		if _, err := l.Add(t.Context(), bytes.NewReader(simrobot.Image("1.3.0", 5000)), ota.Upload{Boards: []string{board}}, time.Now()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAVersionThatCannotBeCompared checks that the reply to a robot with such a version has no firmware section,
// because the robot would abort at any version in the reply.
func TestAVersionThatCannotBeCompared(t *testing.T) {
	l := newAppliance(t)
	for version, sent := range map[string]bool{"1.2.4": true, "v1.2.4": false, "latest": false, "1..2": false, "2.0.0-rc1": true} {
		header := headers()
		header.Set("User-Agent", "m5stack-stack-chan/"+version)
		w := l.ask(http.MethodPost, "/xiaozhi/ota/", "perch.local:8003", header, "")
		mustRead(t, w)
		if has := strings.Contains(w.Body.String(), `"firmware"`); has != sent {
			t.Errorf("%s: %s", version, w.Body)
		}
	}
}

// TestInstall checks that Install offers an image regardless of the rollout, until the image is installed.
func TestInstall(t *testing.T) {
	l := newAppliance(t)
	i := l.add(t, simrobot.Image("1.3.0", 0), board)
	old := l.add(t, simrobot.Image("1.1.0", 0), board)
	other := l.add(t, simrobot.Image("1.4.0", 0), "other-board")
	now := time.Now()
	if _, err := l.Install("a0b1c2d3e4f5", "", now); codeOf(err) != "unknown_robot" {
		t.Error(err)
	}
	l.runs(t, mac, "1.2.4")
	if o := l.runs(t, mac, "1.2.4"); o.URL != "" {
		t.Errorf("without a rollout it is offered %+v", o)
	}
	path, err := l.Install("a0b1c2d3e4f5", "", now)
	if err != nil || !strings.HasPrefix(path, "/xiaozhi/ota/firmware/"+i.SHA256) {
		t.Fatalf("%s (%v)", path, err)
	}
	l.catalogue.open(t) // a restart keeps the choice
	l.fixture = newFixture(t, device.AdoptOpen, func(o *ota.Options) { o.Firmware = l.Firmware })
	if o := l.runs(t, mac, "1.2.4"); o.Version != "1.3.0" || o.Force != 0 {
		t.Errorf("it is offered %+v", o)
	}
	l.runs(t, mac, "1.3.0")
	if _, err := l.Install("a0b1c2d3e4f5", "", now); codeOf(err) != "nothing_newer" {
		t.Error(err)
	}
	if _, err := l.Install("a0b1c2d3e4f5", other.SHA256, now); codeOf(err) != "wrong_board" {
		t.Error(err)
	}
	if _, err := l.Install("a0b1c2d3e4f5", strings.Repeat("0", 64), now); codeOf(err) != "unknown_image" {
		t.Error(err)
	}
	must.Value(l.Install("a0b1c2d3e4f5", old.SHA256, now))(t)
	if o := l.runs(t, mac, "1.3.0"); o.Version != "1.1.0" || o.Force != 1 {
		t.Errorf("it is offered %+v", o)
	}
	if o := l.runs(t, mac, "1.3.0"); o.URL != "" {
		t.Errorf("force is sent again: %+v", o)
	}
	if err := l.Forget("a0b1c2d3e4f5"); err != nil || len(l.units.Kept) != 0 {
		t.Error("it is not forgotten")
	}
}

// TestForceThatCannotBeKept checks that an image is not forced if the offer cannot be stored, because it would be
// forced again after a power cut.
func TestForceThatCannotBeKept(t *testing.T) {
	l := newAppliance(t)
	i := l.add(t, simrobot.Image("1.1.0", 0), board)
	must.Value(l.Plan(i.SHA256, ota.Rollout{Percent: 100, Auto: true, Force: true}))(t)
	l.runs(t, mac, "1.2.4")
	l.units.Breaks(io.ErrShortWrite)
	if o := l.runs(t, mac, "1.2.4"); o.URL != "" {
		t.Errorf("offered %+v", o)
	}
	l.units.Breaks(nil)
	if o := l.runs(t, mac, "1.2.4"); o.Force != 1 {
		t.Errorf("offered %+v", o)
	}
	if o := l.runs(t, mac, "1.2.4"); o.URL != "" {
		t.Errorf("offered %+v again", o)
	}
}
