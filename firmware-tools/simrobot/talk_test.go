package simrobot

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/device/xiaozhi"
)

// answer answers a sentence with a transcript, one sentence of text and n packets.
func (s *server) answer(n int) {
	s.text(stt, ttsStart, sentence)
	time.Sleep(60 * time.Millisecond)
	s.pace(n)
	s.text(ttsStop)
}

func TestAutoTurns(t *testing.T) {
	var seen []string
	observe := func(h Observation) {
		switch h := h.(type) {
		case Spoken:
			seen = append(seen, "said "+h.Text)
		case Transcript:
			seen = append(seen, "heard "+h.Text)
		case SentenceShown:
			seen = append(seen, "showed "+h.Text)
		case HungUp:
			seen = append(seen, "hung up")
		}
	}
	stats, err := talk(t, Options{Say: []Sentence{second("one"), second("two")}, Observe: observe}, func(s *server, _ *Robot) {
		start := s.greet()
		for range 2 {
			// A breath of 300 ms, 960 ms of speech, and then silence. The robot does not report the end
			// of a sentence.
			if n := s.quiet(1465*time.Millisecond - time.Since(start)); n != 24 {
				t.Errorf("%d packets in 1.46 s, want 24", n)
			}
			s.answer(10)
			start = s.next(listenAuto)
		}
		<-s.closed
	})
	if err != nil || len(stats.Turns) != 2 {
		t.Fatalf("%v, %d turns", err, len(stats.Turns))
	}
	for _, turn := range stats.Turns {
		if !turn.Answered || turn.Packets != 10 || turn.Transcript != "what time is it" || !slices.Equal(turn.Answer, []string{"It is noon."}) {
			t.Errorf("turn %+v", turn)
		}
		// A breath and the sentence take 1260 of the 1465 ms.
		near(t, "first sound", turn.FirstAudio, 265*time.Millisecond)
		near(t, "the end", turn.Length, 600*time.Millisecond)
	}
	want := []string{"said one", "heard what time is it", "showed It is noon.", "said two", "heard what time is it", "showed It is noon.", "hung up"}
	if !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

func TestManualTurns(t *testing.T) {
	stats, err := talk(t, Options{Mode: xiaozhi.Manual, Say: []Sentence{second("one"), second("two")}}, func(s *server, _ *Robot) {
		s.opens()
		for range 2 {
			s.next(`"state":"start","mode":"manual"`)
			s.heard = 0
			s.next(`"state":"stop"`)
			if s.heard != 23 { // 200 ms of silence, 960 ms of speech and 200 ms of silence, in whole packets
				t.Errorf("%d packets while the button was down, want 23", s.heard)
			}
			s.answer(5)
		}
		<-s.closed
	})
	if err != nil || len(stats.Turns) != 2 || !stats.Turns[1].Answered || stats.Ignored != 0 {
		t.Errorf("%v, %+v", err, stats)
	}
}

func TestUnanswered(t *testing.T) {
	say := []Sentence{second("one")}
	for name, script := range map[string]func(s *server, r *Robot){
		"nothing comes": func(s *server, _ *Robot) { s.greet() },
		"words but no sound": func(s *server, _ *Robot) {
			s.greet()
			s.quiet(2 * time.Second)
			s.text(stt, ttsStart, sentence, ttsStop)
		},
		"it hangs up":       func(s *server, _ *Robot) { s.greet(); s.quiet(2 * time.Second); s.hangUp() },
		"it hangs up early": func(s *server, _ *Robot) { s.greet(); s.hangUp() },
	} {
		stats, err := talk(t, Options{Say: say, AnswerWithin: 5 * time.Second}, script)
		if !errors.Is(err, ErrUnanswered) {
			t.Errorf("%s: %v, want ErrUnanswered", name, err)
		}
		if slices.ContainsFunc(stats.Turns, func(t Turn) bool { return t.Answered }) {
			t.Errorf("%s: a turn counts as answered", name)
		}
	}
}

func TestEventsOpenAChannelWithoutListening(t *testing.T) {
	event := xiaozhi.Event{Name: "face_detected", Data: json.RawMessage(`{"x":1}`)}
	var took time.Duration
	_, err := talk(t, Options{Firmware: "dotty", Events: []xiaozhi.Event{event}}, func(s *server, _ *Robot) {
		s.opens(`{"session_id":"s1","type":"event","name":"state_changed","data":{"state":"idle"}}`)
		start := s.next(`{"session_id":"s1","type":"event","name":"face_detected","data":{"x":1}}`)
		s.quiet(quietTimeout - time.Millisecond)
		<-s.closed
		took = time.Since(start)
	})
	near(t, "hung up", took, quietTimeout)
	if err != nil {
		t.Error(err)
	}
}

func TestReboot(t *testing.T) {
	_, err := talk(t, Options{Stay: true}, func(s *server, _ *Robot) {
		s.greet()
		start := time.Now()
		s.text(`{"type":"system","command":"reboot"}`)
		<-s.closed
		near(t, "rebooted", time.Since(start), time.Second)
	})
	if err != nil {
		t.Error(err)
	}
}

func loudest(pcm []int16) int16 {
	most := int16(0)
	for _, v := range pcm {
		most = max(most, v)
	}
	return most
}

func TestTranscript(t *testing.T) {
	var b bytes.Buffer
	talk(t, Options{Stay: true, Transcript: &b}, func(s *server, _ *Robot) {
		s.greet()
		s.text(`{"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
			`{"capabilities":{"vision":{"url":"http://x/","token":"s3\"cret"}}}}}`)
		s.next(`"id":1`)
		s.text(`{"type":"mcp","payload":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x\"y"}}}`)
		s.next(`"id":2`)
		s.speaks(1)
		time.Sleep(20 * time.Millisecond)
	})
	if strings.Contains(b.String(), "cret") {
		t.Error("the token is in the transcript")
	}
	kinds := map[string]int{}
	for text := range strings.Lines(b.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil || l.At == "" {
			t.Fatalf("line %q: %v", text, err)
		}
		switch {
		case l.JSON != nil:
			kinds[l.From+" json"]++
		case l.Bytes != nil:
			kinds[l.From+" bytes"]++
		case l.Text != "":
			kinds[l.From+" text"]++
		}
	}
	// The robot's second response contains an unescaped quote, and is therefore not JSON.
	if kinds["server json"] != 4 || kinds["server bytes"] != 1 || kinds["robot json"] != 3 || kinds["robot text"] != 1 {
		t.Errorf("lines %v", kinds)
	}
}
