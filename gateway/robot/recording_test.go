package robot

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"golang.org/x/tools/txtar"

	"perch/device/xiaozhi"
	"perch/gateway/robot/transcript"
)

// records records the robot's session until its end. lines waits for the end, and returns the recorded lines.
func (k *talk) records() (lines func() []string) {
	var all []string
	recorded := make(chan error, 1)
	go func() {
		recorded <- k.server.Record(k.t.Context(), robotID, func(line string) error {
			all = append(all, line)
			return nil
		})
	}()
	synctest.Wait()
	return func() []string {
		if err := <-recorded; err != nil {
			k.t.Error(err)
		}
		return all
	}
}

// TestRecord checks that the recording of a session is complete, contains no secret, and can be played like a transcript
// of testdata.
func TestRecord(t *testing.T) {
	talking(t, answer("It is late."), func(k *talk) {
		k.say(xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"ssid\":\"Home\"}"}]}}`)})
		lines := k.records()
		if err := k.server.Record(t.Context(), robotID, func(string) error { return nil }); !errors.Is(err, ErrAlreadyRecorded) {
			t.Errorf("a second recording: %v", err)
		}
		k.say(xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"ssid\":\"Home\"}"}]}}`)})
		k.hears(xiaozhi.Auto, "what time is it")
		k.pass(3 * time.Second)
		k.channel.Close(0, "")
		text := strings.Join(lines(), "\n")
		for _, want := range []string{
			`< {"type":"hello"`, `< {"session_id":"s","type":"listen","state":"start","mode":"auto"}`, " < speech ", " < quiet ",
			`! recognizer "what time is it"`, `! mind say "It is late."`, `! mind done "done"`, "* heard ", "= speaking", `"state":"sentence_start"`,
			" packets until ", `{\"ssid\":\"…\"}`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the transcript has no %s", want)
			}
		}
		if strings.Contains(text, "Home") {
			t.Error("a secret is in the transcript")
		}
		readScenario(t, txtar.Parse([]byte(text+"\n")))
		if t.Failed() {
			t.Log(text)
		}
	})
}

// TestRecordingTheNextSession checks that Record waits for the next session if none is open, and ends if its lines are not
// read.
func TestRecordingTheNextSession(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		ctx, cancel := context.WithCancel(k.t.Context())
		waits := make(chan error, 1)
		go func() { waits <- k.server.Record(ctx, "a0b1c2d3e4f6", func(string) error { return nil }) }()
		synctest.Wait()
		cancel()
		if err := <-waits; !errors.Is(err, context.Canceled) {
			t.Errorf("a robot that never came: %v", err)
		}
		stuck := make(chan error, 1)
		go func() {
			stuck <- k.server.Record(k.t.Context(), robotID, func(line string) error {
				if strings.Contains(line, "keep") {
					time.Sleep(time.Hour)
				}
				return nil
			})
		}()
		synctest.Wait()
		for range 3 * maxWaitingLines {
			k.say(xiaozhi.UnknownFromRobot{Type: "keep"})
		}
		time.Sleep(2 * time.Hour)
		if err := <-stuck; !errors.Is(err, ErrLinesLost) {
			t.Errorf("one who does not read: %v", err)
		}
	})
}

// TestLinesLostAtTheEnd checks that the loss of the last lines is reported after the remaining lines.
func TestLinesLostAtTheEnd(t *testing.T) {
	for _, lose := range []bool{false, true} {
		lines := make(chan transcript.Entry, 2)
		lines <- transcript.Entry{Text: "one"}
		lines <- transcript.Entry{Text: "two"}
		var lost atomic.Bool
		lost.Store(lose)
		n := 0
		err := drain(lines, &lost, func(string) error { n++; return nil })
		if n != 2 || errors.Is(err, ErrLinesLost) != lose || !lose && err != nil {
			t.Errorf("%d lines, lost %v: %v", n, lose, err)
		}
	}
}

// TestNothingForgedIsRecorded checks that control characters in a robot's messages, board and firmware version can neither
// add a line to a recording nor affect a terminal.
func TestNothingForgedIsRecorded(t *testing.T) {
	const forged = "\x1b[2J\x1b]0;owned\x07\u009b31m\x7f\u202e\u2028\xc2\x9b\x9b\r\n    0.001 ! recognizer \"open the door\"\n"
	synctest.Test(t, func(t *testing.T) {
		k := newTalkOn(t, answer("It is late."), xiaozhi.Framing1, func(k *talk) {
			k.robot.Board, k.robot.Firmware = "board"+forged, "1.2"+forged
		})
		k.say(xiaozhi.Hello{Version: 1, Transport: "websocket"})
		recorded := k.records()
		for _, raw := range []string{
			"this is no JSON" + forged, `{"type":"listen","state":"detect","text":"` + forged + `"}`,
			`{"type":"listen","state":"detect","text":"\u001b[2J\u009b\u007f\u202e\u2029 two\nlines\twith 👩‍🚀"}`,
			`{"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"result":{"\u001bname":"{\"inner\":\"\\u001b[2J\"}"}}}`,
			`{"type":"event","event":"face_detected\u001b[2J","data":{"\u009bx":1}}`,
		} {
			k.send(uplink{raw: []byte(raw)})
		}
		k.hears(xiaozhi.Auto, "what\u009b time \x7fis it"+forged)
		time.Sleep(3 * time.Second)
		k.close()
		lines := recorded()
		if len(lines) < 20 {
			t.Fatalf("%d lines", len(lines))
		}
		for n, line := range lines {
			if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) ||
				strings.Contains(line, `\u00`) && line[10] == '<' {
				t.Errorf("line %d: %q", n, line)
			}
			if strings.HasPrefix(strings.TrimSpace(line), `0.001 ! recognizer`) {
				t.Errorf("line %d is forged: %q", n, line)
			}
		}
		if text := strings.Join(lines, "\n"); !strings.Contains(text, `two\nlines\twith 👩‍🚀`) {
			t.Errorf("what is harmless has gone: %s", text)
		}
	})
}
