package homeassistant

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/event"
	"perch/gateway/homeassistant/discovery"
	"perch/must"
	"perch/store/storetest"
	"perch/waittest"
)

const (
	state1        = "perch/a0b1c2d3e4f4/state"
	conversation1 = "perch/a0b1c2d3e4f4/conversation"
)

func TestCommands(t *testing.T) {
	b, h, e, _ := mirrored(t, unchanged)
	h.hello(chan1, "s1")
	e.await(state1, has(`"connected":true`, `"volume":70`))
	for _, c := range []struct{ thing, payload, done, state string }{
		{"say", "the wash is done", "say the wash is done", ""},
		{"volume", "40.0", `audio_speaker.set_volume {"volume":40}`, `"volume":40`},
		{"brightness", "10", `screen.set_brightness {"brightness":10}`, `"brightness":10`},
		{"head", `{"yaw":-45,"pitch":20,"speed":300}`, `robot.set_head_angles {"pitch":20,"speed":300,"yaw":-45}`, `"head_yaw":-45,"head_pitch":20`},
		{"head_yaw", "500", `robot.set_head_angles {"yaw":128}`, `"head_yaw":128`},
		{"head_pitch", "1", `robot.set_head_angles {"pitch":5}`, `"head_pitch":5`},
		{"led", `{"state":"ON","color":{"r":255,"g":0,"b":0},"brightness":128}`, `robot.set_led_color {"blue":0,"green":0,"red":84}`,
			`"color":{"r":255`},
		{"led", `{"state":"ON","brightness":64}`, `robot.set_led_color {"blue":0,"green":0,"red":42}`, `"brightness":64`},
		{"led", `{"state":"ON","color":{"r":0,"g":0,"b":255}}`, `robot.set_led_color {"blue":42,"green":0,"red":0}`, `"b":255`},
		{"led", `{"state":"OFF"}`, `robot.set_led_color {"blue":0,"green":0,"red":0}`, `"led":{"state":"OFF"}`},
		{"mute", "ON", "mute true", `"mute":true`},
		{"mute", "OFF", "mute false", `"mute":false`},
		{"emotion", "happy", "feel happy", `"emotion":"happy"`},
		{"stop", "PRESS", "abort", ""},
		{"identify", "PRESS", "alert here is a0b1c2d3e4f4", ""},
		{"reboot", "PRESS", "reboot", ""},
	} {
		e.forget()
		b.publish("perch/a0b1c2d3e4f4/"+c.thing+"/set", c.payload)
		h.talk.await(t, c.done)
		if c.state != "" {
			e.await(state1, has(c.state))
		}
	}
	b.listen("perch/a0b1c2d3e4f4/led").await("perch/a0b1c2d3e4f4/led", equals(`{"state":"OFF"}`))
	b.publish("perch/A0:B1:C2:D3:E4:F4/say/set", "in another spelling")
	h.talk.await(t, "say in another spelling")
	b.publish("perch/a0b1c2d3e4f4/notify/set", `{"text":"tea is ready","urgency":"high"}`)
	e.await("perch/a0b1c2d3e4f4/notification", has(`"event_type":"received"`, "tea is ready", `"urgency":"high"`))
	h.talk.set(func() { h.talk.refuse = errors.New("the motor is stuck") })
	b.publish("perch/a0b1c2d3e4f4/volume/set", "55")
	e.await(conversation1, has(`"event_type":"command_rejected"`, `"thing":"volume"`, "the motor is stuck"))
}

// TestALightIsDimmedInItsNewColour tests that a brightness that comes before the robot has taken a colour keeps this
// colour.
func TestALightIsDimmedInItsNewColour(t *testing.T) {
	b, h, e, _ := mirrored(t, unchanged)
	h.hello(chan1, "s1")
	e.await(state1, has(`"connected":true`))
	holds := make(chan struct{})
	h.talk.set(func() { h.talk.holds = holds })
	b.publish("perch/a0b1c2d3e4f4/led/set", `{"state":"ON","color":{"r":0,"g":0,"b":255}}`)
	h.talk.await(t, `robot.set_led_color {"blue":168,"green":0,"red":0}`)
	b.publish("perch/a0b1c2d3e4f4/led/set", `{"state":"ON","brightness":64}`)
	b.publish("perch/a0b1c2d3e4f4/volume/set", "loud") // handled after the brightness
	e.await(conversation1, has(`"event_type":"command_rejected"`))
	close(holds)
	h.talk.await(t, `robot.set_led_color {"blue":42,"green":0,"red":0}`)
}

// TestCommandsWaitForHello tests that commands for a robot with a closed channel wait until the robot connects.
func TestCommandsWaitForHello(t *testing.T) {
	b, h, e, end := mirrored(t, unchanged)
	e.await("perch/a0b1c2d3e4f4/status", equals("online"))
	h.talk.open(chan1, false)
	for thing, payload := range map[string]string{"volume": "20", "reboot": "x", "emotion": "sad", "say": "later"} {
		b.publish("perch/a0b1c2d3e4f4/"+thing+"/set", payload)
		e.await(conversation1, has(`"event_type":"queued"`, `"thing":"`+thing+`"`))
	}
	e.forget()
	b.publish("perch/a0b1c2d3e4f4/stop/set", "x")    // does not wait, because the robot is silent already
	b.publish("perch/a0b1c2d3e4f4/volume/set", "30") // replaces the first volume
	e.await(conversation1, has(`"event_type":"queued"`))
	e.await(state1, has(`"volume":30`)) // the state shows the requested value
	b.publish("perch/a0b1c2d3e4f4/led/set", `{"state":"ON"}`)
	e.await("perch/a0b1c2d3e4f4/led", has(`"state":"ON"`, `"r":255`))
	if calls := h.talk.calls(); len(calls) > 0 {
		t.Fatalf("done with a closed channel: %q", calls)
	}
	end() // restart the appliance
	h.start(t, must.Value(New(h.options))(t))
	e.await("perch/bridge/status", equals("online"))
	b.listen(state1).await(state1, has(`"volume":30`))
	e.forget()
	h.hello(chan1, "s1")
	h.talk.await(t, "reboot")
	for _, thing := range []string{"volume", "emotion", "reboot"} {
		e.await(conversation1, has(`"event_type":"done"`, `"thing":"`+thing+`"`))
	}
	calls := h.talk.calls()
	if slices.Contains(calls, `audio_speaker.set_volume {"volume":20}`) || !slices.Contains(calls, `audio_speaker.set_volume {"volume":30}`) ||
		calls[len(calls)-1] != "reboot" {
		t.Errorf("done at its hello: %q", calls)
	}
	if kept := h.options.WaitingCommands.(*storetest.Table[[]Waiting]); len(kept.Kept) > 0 {
		t.Errorf("still kept: %v", kept.Kept)
	}
}

// TestWaitingCommandsOnAFullDisk tests that a stored command waits on if the disk is full when the robot goes offline
// again, unless a later one has replaced it.
func TestWaitingCommandsOnAFullDisk(t *testing.T) {
	table := &storetest.Table[[]Waiting]{}
	c := newWaitingCommands(table)
	volume, later := &Waiting{Thing: "volume", Payload: "20"}, &Waiting{Thing: "volume", Payload: "30"}
	must.Succeed(t, c.store("robot", volume))
	for range 2 {
		if started := c.start("robot"); !slices.Equal(started, []*Waiting{volume}) {
			t.Fatalf("started %v", started)
		}
		table.RefuseDurable(errors.New("no space left on device"))
		must.Succeed(t, c.store("robot", volume))
		table.RefuseDurable(nil)
	}
	c.start("robot")
	must.Succeed(t, c.store("robot", later))
	if err := c.store("robot", volume); !errors.Is(err, errReplaced) {
		t.Error(err)
	}
	if started := c.start("robot"); !slices.Equal(started, []*Waiting{later}) {
		t.Errorf("started %v", started)
	}
}

// TestANotificationForAClosedChannel tests that a notification for a closed channel is reported as queued and as done,
// like any other command, although the notifier stores it.
func TestANotificationForAClosedChannel(t *testing.T) {
	b, h, e, _ := mirrored(t, unchanged)
	e.await("perch/a0b1c2d3e4f4/status", equals("online"))
	for _, c := range []struct {
		id, reported string
		states       []string
	}{
		{"n1", "done", []string{notice.Shown, notice.Spoken, notice.Acknowledged}},
		{"n2", "command_rejected", []string{notice.Expired}},
	} {
		e.forget()
		b.publish("perch/a0b1c2d3e4f4/notify/set", `{"id":"`+c.id+`","text":"the wash is done"}`)
		e.await(conversation1, has(`"event_type":"queued"`, `"thing":"notify"`))
		for _, state := range c.states {
			h.happens(chan1, "", event.NotificationChanged{ID: c.id, State: state})
			e.await("perch/a0b1c2d3e4f4/notification", has(`"event_type":"`+state+`"`, `"id":"`+c.id+`"`))
			if got := e.on(conversation1); len(got) > 1 && state == notice.Shown {
				t.Errorf("published before it was spoken: %q", got)
			}
		}
		e.await(conversation1, has(`"event_type":"`+c.reported+`"`, `"thing":"notify"`))
		if got := e.on(conversation1); len(got) != 2 {
			t.Errorf("%s: published %q", c.id, got)
		}
	}
}

func TestBadCommands(t *testing.T) {
	b, h, e, _ := mirrored(t, unchanged)
	h.hello(chan1, "s1")
	for _, c := range []struct{ topic, payload, why string }{
		{"perch/a0b1c2d3e4f4/say/set", strings.Repeat("x", 1<<20), "more than 65536"},
		{"perch/a0b1c2d3e4f4/say/set", "\xff\x00\xfe\x01", "not text in UTF-8"},
		{"perch/a0b1c2d3e4f4/volume/set", "fifty", "is not a number"},
		{"perch/a0b1c2d3e4f4/volume/set", `"50"`, "is not a number"},
		{"perch/a0b1c2d3e4f4/volume/set", "101", "volume must be from 0 to 100, not 101"},
		{"perch/a0b1c2d3e4f4/head/set", `{"yaw":"left"}`, "with numbers"},
		{"perch/a0b1c2d3e4f4/head/set", `{"roll":3}`, "unknown field"},
		{"perch/a0b1c2d3e4f4/led/set", `{"state":"ON","color":{"r":300}}`, "not to 300"},
		{"perch/a0b1c2d3e4f4/mute/set", "maybe", "ON or OFF"},
		{"perch/a0b1c2d3e4f4/emotion/set", "hungry", "no emotion"},
		{"perch/a0b1c2d3e4f4/firmware/set", "1.2.3", "firmware is install"},
		{"perch/a0b1c2d3e4f4/perception/set", `{"name":"x\ty"}`, "characters that cannot be shown"},
		{"perch/a0b1c2d3e4f4/perception/set", `{"name":"x","data":[1]}`, "must be a JSON object"},
		{"perch/a0b1c2d3e4f4/perception/set", `face_detected`, "is not a JSON object"},
		{"perch/a0b1c2d3e4f4/cookies/set", "5", "there is no"},
		{"perch/a0b1c2d3e4f4/notify/set", `{"event_type":"received","id":"x","text":"our own"}`, "sends it back"},
		{"perch/a0b1c2d3e4f4/notify/set", `{"text":"x","robot":"a0b1c2d3e4f6"}`, "the body names the robot"},
	} {
		e.forget()
		before := h.log.Lines("WARN")
		b.publish(c.topic, c.payload)
		e.await(conversation1, has(`"event_type":"command_rejected"`, c.why))
		if n := h.log.Lines("WARN") - before; n != 1 {
			t.Errorf("%s %.40q: %d lines in the log, not one", c.topic, c.payload, n)
		}
	}
	for _, topic := range []string{"perch/nobody/say/set", "perch/a0b1c2d3e400/say/set", "perch/bridge/say/set", "perch/bridge/request/Cookies",
		"perch/" + strings.Repeat("y", 3000) + "/say/set"} {
		before := h.log.Lines("WARN")
		b.publish(topic, "hello")
		waittest.For(t, "one line on "+topic[:20], func() bool { return h.log.Lines("WARN") == before+1 })
	}
	if calls := h.talk.calls(); len(calls) > 0 {
		t.Errorf("done: %q", calls)
	}
	b.publish("perch/a0b1c2d3e4f4/say/set", "still here")
	h.talk.await(t, "say still here")
	for range 60 { // a flood, whose refusals are logged at a limited rate
		b.publish("perch/nobody/say/set", "hello")
	}
	b.publish("perch/a0b1c2d3e4f4/say/set", "after the flood")
	h.talk.await(t, "say after the flood")
	if n := h.log.Lines("names no robot"); n > 40 {
		t.Errorf("%d lines of a flood", n)
	}
}

// TestRetainedCommandsAreIgnored tests that retained commands are ignored. A retained reboot would otherwise restart the
// robot at every start of the appliance.
func TestRetainedCommandsAreIgnored(t *testing.T) {
	b := newMosquitto(t).start()
	b.retain("perch/a0b1c2d3e4f4/reboot/set", "x")
	b.retain("perch/bridge/request/forget", "a0b1c2d3e4f4")
	h := over(b)
	e := b.listen(conversation1, "perch/bridge/status")
	h.hello(chan1, "s1")
	h.run(t)
	e.await(conversation1, has(`"event_type":"command_rejected"`, "retained"))
	waittest.For(t, "the request's line", func() bool { return h.log.Lines("it is retained") == 1 })
	if calls := h.talk.calls(); len(calls) > 0 {
		t.Errorf("done: %q", calls)
	}
	if _, err := h.registry.Get(chan1); err != nil {
		t.Error(err)
	}
}

func TestRequests(t *testing.T) {
	restarted := make(chan struct{}, 1)
	var faulty atomic.Bool
	b, h, e, _ := mirrored(t, func(h *harness) {
		h.meet(chan2)
		h.options.Restart = func() { restarted <- struct{}{} }
		h.options.Startable = func() error {
			if faulty.Load() {
				return errors.New("line 3: its configuration has a fault")
			}
			return nil
		}
	})
	e.await("perch/a0b1c2d3e4f6/status", equals("online"))
	b.publish("perch/bridge/request/devices", `{"transaction":7}`)
	e.await("perch/bridge/response/devices", has(`"transaction":7`, `"status":"ok"`, `"id":"a0b1c2d3e4f4"`, `"id":"a0b1c2d3e4f6"`))
	b.publish("perch/bridge/request/notify", `{"transaction":"t1","text":"for all"}`)
	e.await("perch/bridge/response/notify", has(`"transaction":"t1"`, `"status":"ok"`, `"id":`))
	e.await("perch/bridge/notification", has("for all", `"event_type":"received"`))
	b.publish("perch/bridge/request/adopt", `{"robot":"A0-B1-C2-D3-E4-F6","transaction":"t2"}`)
	e.await("perch/bridge/response/adopt", has(`"transaction":"t2"`, `"status":"ok"`))
	if text := h.log.String(); !h.registry.Trusts(chan2) || !strings.Contains(text, "adopted") || !strings.Contains(text, "a0b1c2d3e4f6") {
		t.Errorf("not adopted, or not logged: %s", text)
	}
	e.forget()
	b.publish("perch/bridge/request/forget", `{"robot":"a0b1c2d3e4f6","transaction":"t3"}`)
	e.await("perch/bridge/response/forget", has(`"transaction":"t3"`, `"status":"ok"`))
	e.await("homeassistant/device/perch_a0b1c2d3e4f6/config", equals(""))
	e.await("perch/a0b1c2d3e4f6/state", equals(""))
	e.await("perch/a0b1c2d3e4f6/status", equals(""))
	for verb, c := range map[string]struct{ payload, why string }{
		"forget": {`{"robot":"+","transaction":"t4"}`, "not a MAC address"},
		"adopt":  {`{"code":"000000","transaction":"t4"}`, "no robot waits"},
		"notify": {`{"transaction":"t4"}`, "needs a text"},
		"dance":  {`{"transaction":"t4"}`, "the requests are devices, notify, adopt, forget, firmware, restart"},
	} {
		b.publish("perch/bridge/request/"+verb, c.payload)
		e.await("perch/bridge/response/"+verb, has(`"status":"error"`, c.why, `"transaction":"t4"`))
		e.await("perch/bridge/refused", has(c.why, `"event_type":"`+discovery.ListedOrOther(verb, discovery.RequestVerbs())+`"`))
	}
	faulty.Store(true)
	b.publish("perch/bridge/request/restart", "PRESS")
	e.await("perch/bridge/response/restart", has(`"status":"error"`, "line 3"))
	e.await("perch/bridge/refused", has(`"event_type":"restart"`, "line 3"))
	faulty.Store(false)
	b.publish("perch/bridge/request/restart", "PRESS")
	e.await("perch/bridge/response/restart", has(`"status":"ok"`))
	<-restarted
	late := b.listen("perch/a0b1c2d3e4f6/#", "homeassistant/device/perch_a0b1c2d3e4f6/#", "perch/bridge/status")
	late.await("perch/bridge/status", equals("online"))
	late.mu.Lock()
	defer late.mu.Unlock()
	if len(late.all) != 1 {
		t.Errorf("a ghost: %v", late.all)
	}
}

func TestPerceived(t *testing.T) {
	b, h, e, _ := mirrored(t, func(h *harness) { h.options.ShareTranscripts = true })
	h.hello(chan1, "s1")
	see := func(name, data string) { h.happens(chan1, "s1", event.Perceived{Name: name, Data: []byte(data)}) }
	see("face_detected", "{}")
	e.await(state1, has(`"face":true`))
	e.await("homeassistant/device/perch_a0b1c2d3e4f4/config", has(`"face":{`))
	see("face_recognized", `{"identity":"Ada","source":"room_view"}`)
	e.await(state1, has(`"identity":"Ada"`))
	see("face_lost", "{}")
	e.await(state1, has(`"face":false`, `"identity":null`))
	see("head_pet_started", "{}")
	e.await("perch/a0b1c2d3e4f4/touch", has(`"event_type":"press_start"`))
	see("head_pet_ended", "{}")
	e.await("perch/a0b1c2d3e4f4/touch", has(`"event_type":"press_end"`))
	see("something_new", `{"x":1}`)
	e.await("perch/a0b1c2d3e4f4/perception", has(`"event_type":"other"`, `"name":"something_new"`, `{"x":1}`))
	b.publish("perch/a0b1c2d3e4f4/perception/set", `{"name":"face_detected","data":{"by":"a camera on the shelf"}}`)
	e.await("perch/a0b1c2d3e4f4/perception", has(`"face_detected"`, "a camera on the shelf"))
	e.await(state1, has(`"face":true`, `"identity":null`))
	h.happens(chan1, "s1", event.Heard{Text: "good morning"})
	e.await(state1, has(`"last_heard":"good morning"`))
	e.await(conversation1, has(`"event_type":"heard"`, "good morning"))
}

// TestANotificationFromBefore tests that the steps of a notification from before a restart are published with its text,
// and on the same topic.
func TestANotificationFromBefore(t *testing.T) {
	inBubble(t, func(h *harness, _ *script) {
		kept := notice.NewStore(&storetest.Table[notice.Notification]{})
		must.Value(kept.Accept(notice.Notification{ID: "wash", Text: "the wash is done", Urgency: notice.UrgencyNormal}, time.Now()))(t)
		h.options.Notices = kept
	}, func(t *testing.T, h *harness, s *script) {
		h.happens(chan1, "", event.NotificationChanged{ID: "wash", State: notice.Spoken})
		time.Sleep(time.Second)
		reported := s.on("perch/bridge/notification")
		if len(reported) != 1 || !has(`"spoken"`, `"the wash is done"`, `"normal"`, `"robot":"a0b1c2d3e4f4"`)(string(reported[0].Payload)) {
			t.Errorf("published is %v", reported)
		}
	})
}

// TestAQuestionIsAnswered tests that the answer event tells whether the answer is yes, no or other words, and that the
// event "none" follows at once for an offline robot.
func TestAQuestionIsAnswered(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		ask := func(payload string, answer agent.Answer) string {
			h.talk.set(func() { h.talk.answers = answer })
			s.take(incoming{Topic: "perch/a0b1c2d3e4f4/ask/set", Payload: []byte(payload)})
			synctest.Wait()
			return s.last("perch/a0b1c2d3e4f4/answer")
		}
		const garage = `{"id":"garage","text":"Shall I close it?","within":30}`
		for _, c := range []struct {
			payload string
			answer  agent.Answer
			want    string
		}{
			{garage, agent.Answer{Outcome: agent.AnswerGiven, Text: "Yes, please."},
				`{"event_type":"yes","id":"garage","question":"Shall I close it?","text":"Yes, please.","reason":""}`},
			{garage, agent.Answer{Outcome: agent.AnswerTouch}, `{"event_type":"yes","id":"garage","question":"Shall I close it?","text":"","reason":""}`},
			{"Shall I close it?", agent.Answer{Outcome: agent.AnswerGiven, Text: "nein"}, `{"event_type":"no","id":"","question":"Shall I close it?","text":"nein","reason":""}`},
			{"Bright or cosy?", agent.Answer{Outcome: agent.AnswerGiven, Text: "cosy"}, `{"event_type":"words","id":"","question":"Bright or cosy?","text":"cosy","reason":""}`},
			{"Well?", agent.Answer{Outcome: agent.AnswerExpired}, `{"event_type":"none","id":"","question":"Well?","text":"","reason":"expired"}`},
		} {
			if got := ask(c.payload, c.answer); got != c.want {
				t.Errorf("%s: %s", c.payload, got)
			}
		}
		h.talk.set(func() {
			if within := time.Until(h.talk.asked.Until); within != time.Minute {
				t.Errorf("the last had %s", within)
			}
		})
		h.talk.open(chan1, false)
		if got := ask(garage, agent.Answer{}); !has(`"none"`, `"reason":"the robot's channel is closed"`)(got) {
			t.Errorf("of a robot that is not there: %s", got)
		}
		before := len(s.on("perch/a0b1c2d3e4f4/answer"))
		for payload, why := range map[string]string{"": "no text to say", `{"id":"x"}`: "no text to say", `{"text":"x","within":9999}`: "5 to 600 seconds",
			`{"question":"x"}`: "unknown field"} {
			ask(payload, agent.Answer{})
			if got := s.last(conversation1); !has(`"command_rejected"`, `"ask"`, why)(got) {
				t.Errorf("%q: %s", payload, got)
			}
		}
		if n := len(s.on("perch/a0b1c2d3e4f4/answer")); n != before {
			t.Errorf("%d answers to no question", n-before)
		}
	})
}
