package homeassistant

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/command"
	"perch/gateway/homeassistant/state"
	"perch/must"
)

const (
	update1  = "perch/a0b1c2d3e4f4/firmware"
	install1 = "perch/a0b1c2d3e4f4/firmware/set"
	config1  = "homeassistant/device/perch_a0b1c2d3e4f4/config"
)

// stock is a fake catalogue with one image for all robots.
type stock struct {
	mu       sync.Mutex
	runs     map[device.ID]string
	newest   string
	refuse   error
	wanted   []device.ID
	fetched  []string
	fetching chan struct{} // Fetch returns when this is closed, or at once if it is nil
}

func (s *stock) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *stock) Update(id device.ID) (installed, latest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id], s.newest
}

func (s *stock) Install(id device.ID, sha256 string, _ time.Time) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse == nil {
		s.wanted = append(s.wanted, id)
	}
	return "/xiaozhi/ota/firmware/x.bin?r=1", s.refuse
}

func (s *stock) Fetch(ctx context.Context, from, sha256, board string, _ time.Time) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched = append(s.fetched, from+" "+sha256+" "+board)
	if wait := s.fetching; wait != nil {
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	return "2.4.0", s.refuse
}

func (s *stock) Forget(id device.ID) error {
	s.set(func() { delete(s.runs, id) })
	return nil
}

// upgrades returns the tool with which a robot installs an image.
func upgrades() device.Tool {
	return device.Tool{Name: command.UpgradeTool, Schema: device.Schema{Type: "object",
		Properties: map[string]device.Argument{"url": {Type: "string"}}, Required: []string{"url"}}}
}

// stocked adds a catalogue to a harness and more tools to its robot.
func stocked(h *harness, more ...device.Tool) *stock {
	h.talk.tools = append(h.talk.tools, more...)
	s := &stock{runs: map[device.ID]string{chan1: "2.2.4"}, newest: "2.3.0"}
	h.options.Firmware = s
	return s
}

// TestAnUpgrade tests what Home Assistant sees of an upgrade: the offer, the call of the robot's tool, the progress and
// the end.
func TestAnUpgrade(t *testing.T) {
	var s *stock
	b, h, e, _ := mirrored(t, func(h *harness) { s = stocked(h, upgrades()) })
	e.await(config1, has(`"payload_install":"install"`, `"state_topic":"`+update1+`"`, `"command_topic":"`+install1+`"`))
	e.await(update1, equals(`{"installed_version":"2.2.4","latest_version":"2.3.0","in_progress":false,"update_percentage":null}`))
	h.hello(chan1, "s1")
	e.await(state1, has(`"connected":true`))
	b.publish(install1, "install")
	h.talk.await(t, `upgrade_firmware {"url":"http://192.168.1.2:8003/xiaozhi/ota/firmware/x.bin?r=1"}`)
	for _, step := range []struct {
		event event.Event
		shows string
	}{
		{event.FirmwareProgress{Version: "2.3.0", Bytes: 1 << 20, Size: 4 << 20}, `"in_progress":true,"update_percentage":25}`},
		{event.FirmwareProgress{Version: "2.3.0", Bytes: 4 << 20, Size: 4 << 20}, `"in_progress":true,"update_percentage":100}`},
		{event.FirmwareRolledBack{Version: "2.3.0"}, `"latest_version":"2.3.0","in_progress":false,"update_percentage":null}`},
		{event.FirmwareProgress{Version: "2.3.0", Bytes: 9, Size: 4 << 20}, `"in_progress":true,"update_percentage":0}`},
		{event.FirmwareFailed{Version: "2.3.0", Why: "it went back"}, `"latest_version":"2.3.0","in_progress":false,"update_percentage":null}`},
		{event.FirmwareProgress{Version: "2.3.0", Bytes: 9, Size: 9}, `"in_progress":true,"update_percentage":100}`},
	} {
		e.forget()
		h.happens(chan1, "", step.event)
		e.await(update1, has(step.shows))
	}
	s.set(func() { s.runs[chan1] = "2.3.0" })
	c := device.CheckIn{ID: chan1, Client: device.Client{ID: "c0ffee00-0000-4000-8000-" + string(chan1)}, Board: "m5stack-stack-chan",
		Firmware: "2.3.0", BaseURL: "http://192.168.1.2:8003"}
	h.registry.CheckIn(c, time.Now())
	h.happens(chan1, "", event.RobotSeen{Firmware: "2.3.0"}, event.FirmwareInstalled{Version: "2.3.0"})
	e.await(update1, equals(`{"installed_version":"2.3.0","latest_version":"2.3.0","in_progress":false,"update_percentage":null}`))
	keys := []string{"installed_version", "latest_version", "title", "release_summary", "release_url", "entity_picture", "in_progress",
		"update_percentage"}
	for _, payload := range e.on(update1) {
		var shown map[string]any
		must.Succeed(t, json.Unmarshal([]byte(payload), &shown))
		for key := range shown {
			if !slices.Contains(keys, key) {
				t.Errorf("Home Assistant does not know %s", key)
			}
		}
	}
	b.listen(update1).await(update1, has(`"installed_version":"2.3.0"`)) // the message is retained
}

// TestAnUpgradeThatWaits tests that a robot that is offline or does not answer gets the upgrade at its next check-in,
// and that the outcome is published then.
func TestAnUpgradeThatWaits(t *testing.T) {
	var s *stock
	var wanted []device.ID
	b, h, e, _ := mirrored(t, func(h *harness) { s = stocked(h, upgrades()) })
	e.await(update1, has(`"latest_version":"2.3.0"`))
	for _, c := range []struct {
		online   bool
		event    event.Event
		reported string
	}{
		{false, event.FirmwareInstalled{Version: "2.3.0"}, `"event_type":"done"`},
		{true, event.FirmwareFailed{Version: "2.3.0", Why: "it went back"}, `"event_type":"command_rejected"`},
	} {
		e.forget()
		if c.online {
			h.hello(chan1, "s1")
			e.await(state1, has(`"connected":true`))
			h.talk.open(chan1, false) // calls of the tool now fail
		}
		b.publish(install1, "install")
		e.await(conversation1, has(`"event_type":"queued"`, `"thing":"firmware"`))
		h.happens(chan1, "", c.event)
		e.await(conversation1, has(c.reported, `"thing":"firmware"`))
		h.happens(chan1, "", c.event, event.Command{Thing: "x", State: event.CommandQueued}) // not installed by a command, so no outcome is published
		e.await(conversation1, has(`"thing":"x"`))
		if reported := e.on(conversation1); len(reported) != 3 {
			t.Errorf("published: %q", reported)
		}
	}
	s.set(func() { wanted = slices.Clone(s.wanted) })
	if len(wanted) != 2 || slices.ContainsFunc(h.talk.calls(), has("upgrade")) {
		t.Errorf("wanted %v, done %q", wanted, h.talk.calls())
	}
	e.forget()
	s.set(func() { s.refuse = errors.New("there is no newer image for this robot in the catalogue") })
	b.publish(install1, "install")
	e.await(conversation1, has(`"event_type":"command_rejected"`, `"thing":"firmware"`, "no newer image"))
}

// TestFetching tests that an image is fetched while other requests are carried out.
func TestFetching(t *testing.T) {
	var s *stock
	b, _, e, _ := mirrored(t, func(h *harness) {
		s = stocked(h)
		s.newest, s.fetching = "2.2.4", make(chan struct{})
	})
	e.await(update1, has(`"latest_version":"2.2.4"`))
	b.publish("perch/bridge/request/firmware", `{"transaction":2,"url":"http://x/y.bin","sha256":"00ff","board":"m5stack-stack-chan"}`)
	b.publish("perch/bridge/request/notify", `{"transaction":3,"text":"for all"}`)
	e.await("perch/bridge/response/notify", has(`"transaction":3`, `"status":"ok"`)) // before the fetch has ended
	s.set(func() { s.newest = "2.4.0" })
	close(s.fetching)
	e.await("perch/bridge/response/firmware",
		equals(`{"transaction":2,"status":"ok","data":{"board":"m5stack-stack-chan","sha256":"00ff","version":"2.4.0"}}`))
	e.await(update1, has(`"installed_version":"2.2.4","latest_version":"2.4.0"`)) // at once, and not at the next reconciliation
	s.set(func() {
		if want := []string{"http://x/y.bin 00ff m5stack-stack-chan"}; !slices.Equal(s.fetched, want) {
			t.Errorf("fetched %q", s.fetched)
		}
	})
	s.set(func() { s.refuse = errors.New("the file's SHA-256 is another") })
	b.publish("perch/bridge/request/firmware", `{"transaction":4,"url":"http://x/y.bin","sha256":"00ff","board":"m5stack-stack-chan"}`)
	e.await("perch/bridge/response/firmware", has(`"transaction":4`, `"status":"error"`, "SHA-256 is another"))
	b.publish("perch/bridge/request/forget", `{"transaction":5,"robot":"a0b1c2d3e4f4"}`)
	e.await("perch/bridge/response/forget", has(`"status":"ok"`))
	e.await(update1, equals(""))
	if installed, _ := s.Update(chan1); installed != "" {
		t.Error("the catalogue still knows the robot")
	}
}

// TestADownloadLeftInTheMiddle tests that a download that stops does not stay in progress forever, and that no update
// is offered while the catalogue does not know the robot's new version.
func TestADownloadLeftInTheMiddle(t *testing.T) {
	var stores *stock
	inBubble(t, func(h *harness, _ *script) { stores = stocked(h) }, func(t *testing.T, h *harness, s *script) {
		shown := func() string {
			synctest.Wait()
			return s.last(update1)
		}
		h.happens(chan1, "", event.FirmwareProgress{Version: "2.3.0", Bytes: 1, Size: 2})
		time.Sleep(state.DownloadTimeout - time.Second)
		if got := shown(); !has(`"in_progress":true,"update_percentage":50`)(got) {
			t.Errorf("while it is under way: %s", got)
		}
		time.Sleep(2 * time.Second)
		if got := shown(); !has(`"in_progress":false,"update_percentage":null`)(got) {
			t.Errorf("when it has been left: %s", got)
		}
		stores.set(func() { stores.runs[chan1] = "1.0.0" })
		time.Sleep(reconcileInterval)
		if got := shown(); !has(`"installed_version":"2.2.4","latest_version":"2.2.4"`)(got) {
			t.Errorf("before the catalogue has heard of its check-in: %s", got)
		}
		h.happens(chan1, "", event.FirmwareProgress{Version: "2.3.0", Bytes: 1 << 62, Size: 0}, event.FirmwareProgress{Version: "2.3.0", Bytes: -5,
			Size: 2})
		if got := shown(); !has(`"update_percentage":0`)(got) {
			t.Errorf("of what cannot be: %s", got)
		}
		if d := s.on(update1); !d[0].Retained || d[0].QoS != 1 {
			t.Errorf("%+v", d[0].message)
		}
	})
}

// TestFirmwareNeedsACatalogue tests that the firmware entity exists only while the catalogue has images.
func TestFirmwareNeedsACatalogue(t *testing.T) {
	var stores *stock
	inBubble(t, func(h *harness, _ *script) { stores = stocked(h); stores.runs = nil }, func(t *testing.T, h *harness, s *script) {
		for _, runs := range []string{"", "2.2.4", ""} {
			stores.set(func() { stores.runs = map[device.ID]string{chan1: runs} })
			time.Sleep(reconcileInterval)
			synctest.Wait()
			if announced := has(`"payload_install"`)(s.last(config1)); announced != (runs != "") {
				t.Errorf("it runs %q, and the entity is announced: %t", runs, announced)
			}
			if s.last(update1) == "" && runs != "" {
				t.Error("its versions are not published")
			}
		}
	})
}
