package simrobot

import (
	"testing"
	"time"

	"perch/device/xiaozhi"
)

// long answers a sentence: it sends five packets at once, as an appliance does, and then one packet
// every 60 ms. It stops after n packets, or when until is closed or receives a value. It returns the
// number of sent packets.
func (s *server) long(n int, until <-chan time.Time) (sent int) {
	s.t.Helper()
	s.text(stt, ttsStart, sentence)
	time.Sleep(60 * time.Millisecond)
	s.sound(5)
	for sent = 5; sent < n; sent++ {
		select {
		case <-until:
			return sent
		case <-time.After(60 * time.Millisecond):
			s.sound(1)
		}
	}
	return sent
}

// counted checks that every received packet was played, dropped because of an interruption, or late.
func counted(t *testing.T, s Stats) {
	t.Helper()
	if sum := s.Played + s.CutByBargeIn + s.Late; sum != s.Received || s.Cut+s.Ignored+s.Dropped+s.Bad > 0 {
		t.Errorf("%d received; %d played, %d cut by the barge-in, %d late; lost: %d cut, %d ignored, %d dropped, %d bad",
			s.Received, s.Played, s.CutByBargeIn, s.Late, s.Cut, s.Ignored, s.Dropped, s.Bad)
	}
}

// TestSentenceOverTheAnswer checks an interruption by voice in realtime mode. Like the firmware the
// robot plays its queue to the end.
func TestSentenceOverTheAnswer(t *testing.T) {
	two := second("two")
	two.Over = time.Second
	said := map[string]time.Time{}
	observe := on(func(h Spoken) { said[h.Text] = time.Now() })
	var began time.Time
	stats, err := talk(t, Options{Mode: xiaozhi.Realtime, AEC: AECServer, Framing: 1, Say: []Sentence{second("one"), two}, Observe: observe},
		func(s *server, _ *Robot) {
			s.opens(`"mode":"realtime"`)
			s.quiet(1500 * time.Millisecond)
			began = time.Now().Add(60 * time.Millisecond)
			s.long(100, time.After(1460*time.Millisecond))
			s.text(ttsStop)
			s.quiet(1000 * time.Millisecond) // the robot sends no listen start
			s.answer(5)
			<-s.closed
		})
	if err != nil || len(stats.Turns) != 2 {
		t.Fatalf("%v, %+v", err, stats.Turns)
	}
	near(t, "the second sentence begins", said["two"].Sub(began), time.Second)
	one, other := stats.Turns[0], stats.Turns[1]
	if !one.Interrupted || !one.Answered || other.Interrupted || !other.Answered || other.Packets != 5 || other.Transcript == "" ||
		len(other.Answer) != 1 {
		t.Errorf("turns %+v", stats.Turns)
	}
	near(t, "hushed", one.QuietAfter, 400*time.Millisecond)
	counted(t, stats)
	if stats.CutByBargeIn != 0 || stats.Late != 0 {
		t.Errorf("%+v: realtime plays its queue to the end", stats)
	}
}

// TestPressOverTheAnswer checks an interruption by the button in manual mode. Packets that arrive after
// the robot's abort count as late.
func TestPressOverTheAnswer(t *testing.T) {
	two := second("two")
	two.Over = time.Second
	stats, err := talk(t, Options{Mode: xiaozhi.Manual, Say: []Sentence{second("one"), two}}, func(s *server, _ *Robot) {
		s.opens(`"mode":"manual"`, `"state":"stop"`)
		sent := make(chan int)
		go func() { sent <- s.long(100, time.After(1300*time.Millisecond)) }()
		s.next(`{"session_id":"s1","type":"abort"}`)
		s.next(`"state":"start","mode":"manual"`)
		<-sent
		s.text(ttsStop)
		s.next(`"state":"stop"`)
		s.answer(5)
		<-s.closed
	})
	if err != nil || len(stats.Turns) != 2 || !stats.Turns[0].Interrupted || stats.Turns[1].Packets != 5 || stats.CutByBargeIn == 0 ||
		stats.Late == 0 {
		t.Errorf("%v, %+v", err, stats)
	}
	counted(t, stats)
}

func TestTapOrWakeWordInterruptsTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		tap, wake time.Duration
		firmware  string
		abort     string
		listens   bool // whether the robot listens before the server's tts stop
	}{
		"tap":             {tap: time.Second, abort: `{"session_id":"s1","type":"abort"}`},
		"wake word":       {wake: time.Second, abort: `"reason":"wake_word_detected"`, listens: true},
		"wake word, 2.1":  {wake: time.Second, abort: `"reason":"wake_word_detected"`, firmware: "2.1"},
		"wake word first": {wake: time.Second, tap: 2 * time.Second, abort: `"reason":"wake_word_detected"`, listens: true},
	} {
		one := second("one")
		one.TapAfter, one.WakeAfter = c.tap, c.wake
		stats, err := talk(t, Options{Firmware: c.firmware, Wake: "robot", Say: []Sentence{one, second("two")}}, func(s *server, _ *Robot) {
			s.opens(`"detect"`, listenAuto)
			s.quiet(1500 * time.Millisecond)
			stop := make(chan time.Time)
			sent := make(chan int)
			go func() { sent <- s.long(100, stop) }()
			s.next(c.abort)
			if c.listens {
				s.next(listenAuto)
			}
			time.Sleep(100 * time.Millisecond)
			close(stop)
			<-sent
			s.text(ttsStop)
			if stopped := time.Now(); !c.listens && s.next(listenAuto).Before(stopped) {
				t.Errorf("%s: it listens before tts stop", name)
			}
			s.quiet(1500 * time.Millisecond)
			s.answer(5)
			s.next(listenAuto)
			<-s.closed
		})
		if err != nil || len(stats.Turns) != 2 {
			t.Fatalf("%s: %v, %+v", name, err, stats.Turns)
		}
		if turn := stats.Turns[0]; !turn.Interrupted || !turn.Answered || stats.Turns[1].Interrupted {
			t.Errorf("%s: %+v", name, stats.Turns)
		}
		near(t, name+": tts stop", stats.Turns[0].QuietAfter, 105*time.Millisecond)
		counted(t, stats)
	}
}

func TestButton(t *testing.T) {
	stats, err := talk(t, Options{Stay: true, Mode: xiaozhi.Manual}, func(s *server, r *Robot) {
		s.opens()
		r.Release() // ignored: the button is not pressed
		s.quiet(time.Second)
		r.PressButton()
		s.next(`"state":"start","mode":"manual"`)
		r.PressButton() // ignored: the button is already pressed
		if n := s.quiet(605 * time.Millisecond); n != 10 {
			t.Errorf("%d packets in 600 ms", n)
		}
		r.Release()
		s.next(`"state":"stop"`)
		s.speaks(10)
		time.Sleep(20 * time.Millisecond)
		r.PressButton()
		s.next(`{"session_id":"s1","type":"abort"}`)
		s.next(`"state":"start","mode":"manual"`)
		r.Release()
		s.next(`"state":"stop"`)
		r.Tap() // the robot listens in its default mode
		s.next(listenAuto)
		r.SendEvent(xiaozhi.Event{Name: "poked", Data: []byte("{}")})
		s.next(`"event","name":"poked"`)
		r.Tap()
		<-s.closed
	})
	if err != nil || stats.CutByBargeIn != 9 {
		t.Errorf("%v, %d cut by the barge-in, want 9", err, stats.CutByBargeIn)
	}
}

func TestWakeWordInRealtimeEmptiesQueue(t *testing.T) {
	stats, err := talk(t, Options{Stay: true, AEC: AECServer, Firmware: "2.4", Framing: 2}, func(s *server, r *Robot) {
		s.opens(`"mode":"realtime"`)
		s.speaks(0)
		for n := range uint32(10) {
			s.stamped(60 * (n + 1))
		}
		time.Sleep(100 * time.Millisecond)
		r.WakeWord("robot")
		s.next(`"abort","reason":"wake_word_detected"`)
		s.next(`"mode":"realtime"`)
		s.stamped(660) // a packet that the server sent before it received the abort
		if n := s.quiet(605 * time.Millisecond); n != 10 {
			t.Errorf("%d packets in 600 ms", n)
		}
	})
	if err != nil || stats.CutByBargeIn != 8 || stats.Late != 1 || stats.Played != 2 || stats.Stamped > 2 {
		t.Errorf("%v, %+v", err, stats)
	}
	counted(t, stats)
}
