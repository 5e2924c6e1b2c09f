package bridge

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"perch/agent"
	"perch/limit"
	"perch/store/storetest"
)

func TestRemember(t *testing.T) {
	h := newHarness(t)
	h.speaks(robotB, "s2")
	server := h.local(t)
	for _, body := range []string{
		`{"fact":"user's favourite\ncolour is blue","session_id":"of another server"}`, `{"fact":"tea is at four","session_id":"s2","more":[1]}`,
	} {
		if status, answer := ask(t, server, http.MethodPost, "/api/voice/remember", body); status != 200 || answer != `{"ok":true}` {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	kept := h.memory.Search("", time.Now())
	if len(kept) != 2 || kept[0].Body != "user's favourite colour is blue" || kept[0].Robot != "" || kept[0].Source != "bridge" ||
		kept[1].Body != "tea is at four" || kept[1].Robot != robotB {
		t.Errorf("kept is %+v", kept)
	}
	refuses(t, server, "/api/voice/remember", map[string]refusal{
		"nothing": {``, 400, "bad_body"}, "no fact": {`{}`, 400, "bad_body"}, "blank": {`{"fact":" "}`, 400, "bad_body"},
		"a number": {`{"fact":1}`, 400, "bad_body"}, "a list": {`["x"]`, 400, "bad_body"},
		"too long":           {`{"fact":"` + strings.Repeat("x", limit.Line+1) + `"}`, 400, "bad_body"},
		"more than is taken": {`{"fact":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "body_too_large"},
	})
	if kept := h.memory.Search("", time.Now()); len(kept) != 2 {
		t.Errorf("kept is %+v", kept)
	}
}

// TestWhatABridgeSaysOfAFact tests that the type, tags, salience and expiry of a fact are stored, and that invalid ones are
// refused.
func TestWhatABridgeSaysOfAFact(t *testing.T) {
	h := newHarness(t)
	server := h.local(t)
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	body := `{"fact":"no bright light","type":"feedback","tags":["#Lamp","evening","lamp"],"important":true,"expires":"` + expires.Format(time.RFC3339) + `"}`
	if status, answer := ask(t, server, http.MethodPost, "/api/voice/remember", body); status != 200 || answer != `{"ok":true}` {
		t.Errorf("%d %s", status, answer)
	}
	kept := h.memory.Search("", time.Now())
	if len(kept) != 1 || kept[0].Type != agent.MemoryFeedback || !slices.Equal(kept[0].Tags, []string{"lamp", "evening"}) || !kept[0].Important ||
		!kept[0].Expires.Equal(expires) || len(h.memory.Search("", expires)) != 0 {
		t.Errorf("kept is %+v", kept)
	}
	of := func(more string) refusal { return refusal{`{"fact":"x",` + more + `}`, 400, "bad_body"} }
	many := `"` + strings.Join(strings.Fields(strings.Repeat("a b c d e f g h i ", 500)), `","`) + `"`
	refuses(t, server, "/api/voice/remember", map[string]refusal{
		"a type that is none": of(`"type":"gossip"`), "nine tags": of(`"tags":[` + many + `]`), "two words": of(`"tags":["two words"]`),
		"a tag of 10 kB": of(`"tags":["` + strings.Repeat("x", 10<<10) + `"]`), "the year 9999": of(`"expires":"9999-12-31T23:59:59Z"`),
		"the year 1":      of(`"expires":"0001-06-01T00:00:00Z"`),
		"no time":         {`{"fact":"x","expires":"soon"}`, 400, "bad_body"},
		"the year 10000":  {`{"fact":"x","expires":"10000-01-01T00:00:00Z"}`, 400, "bad_body"},
		"tags of numbers": {`{"fact":"x","tags":[1]}`, 400, "bad_body"},
	})
	if kept := h.memory.Search("", time.Now()); len(kept) != 1 {
		t.Errorf("kept is %+v", kept)
	}
}

// TestTheTurnLog tests that a reported turn is shortened, stored and found.
func TestTheTurnLog(t *testing.T) {
	memoryTable := &storetest.Table[Turn]{}
	h := newHarness(t, func(o *Options) { o.Log = NewLog(memoryTable, 3) })
	server := h.local(t)
	long := strings.Repeat("é", 2000)
	for _, body := range []string{
		`{"user":"what colour is the sky","assistant":"😊 the sky is blue!","session_id":"s1"}`, `{"user":"hm"}`, `{"assistant":"Hello!"}`,
		`{"user":"` + long + `","assistant":"` + long + `"}`,
	} {
		if status, answer := ask(t, server, http.MethodPost, "/api/voice/memory_log", body); status != 200 || answer != `{"ok":true}` {
			t.Errorf("%.80s: %d %s", body, status, answer)
		}
	}
	kept := h.api.o.Log.all()
	if len(kept) != 3 || kept[0].User != "hm" || kept[1].Assistant != "Hello!" || utf8.RuneCountInString(kept[2].User) != 500 ||
		utf8.RuneCountInString(kept[2].Assistant) != 1000 {
		t.Errorf("kept is %.300v", kept)
	}
	for _, body := range []string{``, `{}`, `{"user":" ","assistant":""}`, `{"user":1}`, `null`} {
		if status, answer := ask(t, server, http.MethodPost, "/api/voice/memory_log", body); status != 400 || refused(t, answer) != "bad_body" {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	again := NewLog(memoryTable, 2)
	if kept := again.all(); len(kept) != 2 || kept[0].Assistant != "Hello!" {
		t.Errorf("after a restart with room for two: %.300v", kept)
	}
	NewLog(memoryTable, 0).add(Turn{User: "x"})
	if kept := again.all(); len(kept) != 0 {
		t.Errorf("a log that keeps none keeps %.300v", kept)
	}
}

// TestATurnIsKeptBeforeTheAnswer tests that the response is an error if the turn could not be stored on disk.
func TestATurnIsKeptBeforeTheAnswer(t *testing.T) {
	table := &storetest.Table[Turn]{}
	h := newHarness(t, func(o *Options) { o.Log = NewLog(table, 3) })
	server := h.local(t)
	table.RefuseDurable(errors.New("disk full"))
	if status, answer := ask(t, server, http.MethodPost, "/api/voice/memory_log", `{"user":"hm"}`); status < 500 || len(h.api.o.Log.all()) != 0 {
		t.Errorf("%d %s, kept is %v", status, answer, h.api.o.Log.all())
	}
	table.RefuseDurable(nil)
	if status, answer := ask(t, server, http.MethodPost, "/api/voice/memory_log", `{"user":"hm"}`); status != 200 || len(h.api.o.Log.all()) != 1 {
		t.Errorf("%d %s, kept is %v", status, answer, h.api.o.Log.all())
	}
}

// TestTheTurnLogAndAClockThatIsSetBack tests that the log deletes the turns in the order in which they were added, even if
// the clock was set back.
func TestTheTurnLogAndAClockThatIsSetBack(t *testing.T) {
	memoryTable := &storetest.Table[Turn]{}
	for _, at := range []time.Time{noon.AddDate(5, 0, 0), noon, noon.AddDate(0, 0, -1)} {
		l := NewLog(memoryTable, 2)
		for range 2 {
			l.add(Turn{At: at, User: fmt.Sprint(at.Unix())})
		}
		if kept := l.all(); len(kept) != 2 || kept[0].User != fmt.Sprint(at.Unix()) || kept[1].User != kept[0].User {
			t.Errorf("at %s kept is %v", at, kept)
		}
	}
}
