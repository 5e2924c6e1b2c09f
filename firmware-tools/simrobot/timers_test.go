package simrobot

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"perch/device/xiaozhi"
)

const stateChanged = `{"session_id":"s1","type":"event","name":"state_changed","data":{"state":"idle"}}`

// TestStaleChannelIsReplaced checks that a command on a stale channel opens a new one. As in the
// firmware, the late end of the first channel makes the robot idle soon after it has begun to listen on
// the second channel.
func TestStaleChannelIsReplaced(t *testing.T) {
	for _, c := range []struct{ firmware, does string }{{"2.2.4", "tap"}, {"2.2.4", "wake"}, {"2.4", "wake"}, {"2.1", "press"}} {
		var states []State
		observe := on(func(e Entered) { states = append(states, e.State) })
		stats, err := live(t, Options{Stay: true, Firmware: c.firmware, Mode: xiaozhi.Manual, Observe: observe}, func(n *network, r *Robot) {
			first := n.channel()
			first.quiet(100 * time.Second)
			first.text(`{"type":"keep"}`) // any message keeps the channel from becoming stale
			first.quiet(121*time.Second + time.Millisecond)
			mode := "auto"
			switch c.does {
			case "tap":
				r.Tap()
			case "wake":
				r.WakeWord("robot")
			case "press":
				r.PressButton()
				mode = "manual"
			}
			<-first.closed
			second := n.channel()
			if c.does == "wake" {
				second.next(`"detect","text":"robot"`)
			}
			second.next(`"mode":"` + mode + `"`)
			if sound := second.quiet(time.Second); sound > 0 {
				t.Errorf("%s, %s: %d packets after the end of the first channel got through", c.firmware, c.does, sound)
			}
			synctest.Wait()
			if last := states[len(states)-1]; last != Idle {
				t.Errorf("%s, %s: it is %s", c.firmware, c.does, last)
			}
			r.Tap() // the second tap has its usual effect
			second.next(listenAuto)
			if sound := second.quiet(605 * time.Millisecond); sound != 10 {
				t.Errorf("%s: %d packets in 600 ms", c.firmware, sound)
			}
		})
		if err != nil || stats.Stale != 1 || stats.Channels != 2 {
			t.Errorf("%s, %s: %v; stale %d times, %d channels", c.firmware, c.does, err, stats.Stale, stats.Channels)
		}
	}
}

func TestMessagesKeepTheChannelOpen(t *testing.T) {
	stats, err := live(t, Options{Stay: true, Mode: xiaozhi.Manual}, func(n *network, r *Robot) {
		s := n.channel()
		for i := range 20 {
			s.quiet(120 * time.Second)
			if i%2 == 0 {
				s.text(`{"type":"keep"}`)
			} else {
				s.sound(1)
			}
		}
		r.Tap()
		s.next(listenAuto)
	})
	if err != nil || stats.Stale != 0 || stats.Channels != 1 {
		t.Errorf("%v; stale %d times, %d channels", err, stats.Stale, stats.Channels)
	}
}

func TestDottyReplacesStaleChannel(t *testing.T) {
	stats, err := live(t, Options{Stay: true, Firmware: "dotty", Mode: xiaozhi.Manual}, func(n *network, _ *Robot) {
		opened := time.Now()
		for range 3 {
			s := n.channel()
			s.next(stateChanged)
			s.quiet(100 * time.Millisecond)
			<-s.closed
			if took := time.Since(opened); took != 150*time.Second {
				t.Errorf("it closed the channel after %v, want the first tick after 121 s", took)
			}
			opened = time.Now()
		}
	})
	if err != nil || stats.Stale != 3 || stats.Channels < 3 {
		t.Errorf("%v, %+v", err, stats)
	}
}

func TestDottyTriesThreeTimesToOpenForAnEvent(t *testing.T) {
	event := xiaozhi.Event{Name: "face_detected", Data: []byte("{}")}
	stats, err := live(t, Options{Forever: true, Stay: true, Firmware: "dotty", Mode: xiaozhi.Manual}, func(n *network, r *Robot) {
		s := n.channel()
		s.next(stateChanged)
		s.hangUp()
		<-s.closed
		time.Sleep(time.Hour)
		<-n.dials
		n.refuse.Store(2)
		r.SendEvent(event)
		s = n.channel()
		first := <-n.dials
		if apart := []time.Duration{(<-n.dials).Sub(first), (<-n.dials).Sub(first)}; apart[0] != 500*time.Millisecond || apart[1] != time.Second {
			t.Errorf("tries after %v", apart)
		}
		s.next(stateChanged)
		s.next(`"name":"face_detected"`)
		s.quiet(time.Minute) // the robot sends no listen start
		s.hangUp()
		<-s.closed
		n.refuse.Store(3)
		r.SendEvent(event)
		time.Sleep(time.Minute)
		if tries := len(n.dials); tries != 3 {
			t.Errorf("%d tries, want three and no more", tries)
		}
		r.WakeWord("face") // after the failed attempts the robot is idle, and handles commands as before
		s = n.channel()
		s.next(stateChanged)
		s.next(`"detect","text":"face"`)
		s.next(listenAuto)
	})
	if err != nil || stats.Channels != 3 {
		t.Errorf("%v, %d channels", err, stats.Channels)
	}
}

func TestForeverLastsUntilContextEnds(t *testing.T) {
	stats, err := live(t, Options{Forever: true, Say: []Sentence{second("one")}}, func(n *network, r *Robot) {
		s := n.channel()
		s.next(listenAuto)
		s.quiet(1500 * time.Millisecond)
		s.answer(3)
		s.next(listenAuto)
		<-s.closed // the robot hangs up after the last answer
		r.SendEvent(xiaozhi.Event{Name: "x", Data: []byte("{}")})
		r.Release()
		time.Sleep(time.Hour) // firmware 2.2.4 opens a channel neither for an event nor for a release of the button
		n.refuse.Store(1)
		r.Tap()
		time.Sleep(time.Second)
		r.PressButton()
		s = n.channel()
		s.next(`"mode":"manual"`)
		r.Release()
		s.next(`"state":"stop"`)
		s.quiet(time.Minute) // after the last sentence of Options.Say, Forever keeps the channel open
	})
	if err != nil || len(stats.Turns) != 1 || stats.Channels != 2 {
		t.Errorf("%v, %+v", err, stats)
	}
	_, err = live(t, Options{}, func(n *network, _ *Robot) { n.channel().hangUp(); time.Sleep(time.Hour) })
	if err != nil || errors.Is(err, context.Canceled) {
		t.Errorf("without Forever: %v", err)
	}
}

func TestRemindersRingWithAndWithoutChannel(t *testing.T) {
	var rung []string
	var at []time.Duration
	var start time.Time
	observe := on(func(m Reminded) { rung, at = append(rung, m.Message), append(at, time.Since(start)) })
	_, err := live(t, Options{Forever: true, Stay: true, Mode: xiaozhi.Manual, Observe: observe}, func(n *network, _ *Robot) {
		s := n.channel()
		start = time.Now()
		for _, args := range []string{`{"duration_seconds":600,"message":"tea"}`, `{"duration_seconds":90}`,
			`{"duration_seconds":400,"message":"drink","repeat":true}`} {
			s.text(`{"type":"mcp","payload":` + toolCall("self.robot.create_reminder", args) + `}`)
			s.next(`"id":5`)
		}
		s.quiet(95 * time.Second)
		s.text(`{"type":"mcp","payload":` + toolCall("self.robot.get_reminders", `{}`) + `}`)
		s.next(`"text":"[{\"id\":1,\"duration_seconds\":600,\"message\":\"tea\",\"repeat\":false},{\"id\":3,`)
		s.hangUp()
		<-s.closed
		time.Sleep(810*time.Second - time.Since(start))
	})
	if want := []string{"Time's up!", "drink", "tea", "drink"}; err != nil || !slices.Equal(rung, want) {
		t.Fatalf("%v; rung %q, want %q", err, rung, want)
	}
	for i, d := range []time.Duration{90, 400, 600, 800} {
		near(t, rung[i], at[i], d*time.Second)
	}
}

func TestStopReading(t *testing.T) {
	for name, o := range map[string]Options{"option": {StopReadingAfter: 10 * time.Second}, "method": {}} {
		o.Stay = true
		stats, err := talk(t, o, func(s *server, r *Robot) {
			s.greet()
			s.sound(3)
			s.quiet(9900 * time.Millisecond)
			if name == "method" {
				r.StopReading()
			}
			s.quiet(200 * time.Millisecond)
			s.sound(20)
			if n := s.quiet(time.Minute); n < 900 {
				t.Errorf("%s: %d packets from the robot in a minute", name, n)
			}
			if len(s.to) != 19 { // the robot was already waiting for one message when it stopped reading
				t.Errorf("%s: %d of 20 messages were left lying", name, len(s.to))
			}
		})
		if err != nil || stats.Received < 3 || stats.Received > 4 {
			t.Errorf("%s: %v, %d received", name, err, stats.Received)
		}
	}
}
