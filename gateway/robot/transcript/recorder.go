// Package transcript records sessions. A transcript is what happened in a session, a line each,
// with the seconds since its hello:
//
//	0.000 < {"type":"hello","version":1}     the robot's message
//	1.260 < speech 1200 ms                   its sound, as the end-pointer judged it
//	2.900 > {"type":"tts","state":"start"}   ours
//	2.960 > 18 packets until 3.680           our sound
//	2.880 ! recognizer "what time is it"     the output of an engine, or a command of the appliance
//	2.880 * heard {"text":"what time is it"} an event
//	2.880 = thinking                         the agent's state
//
// It holds no sound. Session ids are "S", secrets are blanked, and what would act on a terminal or
// look like another line is left out.
package transcript

import (
	"fmt"
	"sync"
	"time"

	"perch/agent"
	"perch/event"
	"perch/voice"
)

// Entry is a line of a transcript.
type Entry struct {
	At   time.Duration
	Mark byte
	Text string
	// Of sound: how many packets, when the last one passed, and what it is.
	Packets int
	last    time.Duration
	Sound   string
}

// String returns the line.
func (e Entry) String() string {
	if e.Sound != "" {
		e.Text = fmt.Sprintf("%s %d ms", e.Sound, e.Packets*int(voice.FrameDuration/time.Millisecond))
	} else if e.Packets > 0 {
		e.Text = fmt.Sprintf("%d packets until %.3f", e.Packets, e.last.Seconds())
	}
	return fmt.Sprintf("%9.3f %c %s", e.At.Seconds(), e.Mark, Visible(e.Text, ""))
}

// Recorder makes a transcript. Its methods may be called from any goroutine.
type Recorder struct {
	// Live is set if lines are read as they come: they are then in the order of time.
	Live bool

	session string
	began   time.Time
	out     func(Entry)

	mu     sync.Mutex
	runs   map[byte]*Entry // sound that goes on
	states *agent.Follower
	shown  agent.Shown
}

// NewRecorder returns a recorder of a session that began at a time. It calls out for each entry.
func NewRecorder(session string, began time.Time, out func(Entry)) *Recorder {
	return &Recorder{session: session, began: began, out: out, runs: map[byte]*Entry{}, states: agent.NewBoard().NewFollower(began), shown: agent.Idle}
}

func (r *Recorder) add(mark byte, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addEntry(Entry{At: time.Since(r.began), Mark: mark, Text: text})
}

// addEntry ends the sound before a message of the same side, and adds the line. r.mu is held.
func (r *Recorder) addEntry(e Entry) {
	if r.Live {
		r.endRuns()
	}
	r.endRun(e.Mark)
	r.out(e)
}

// endRuns ends the sound of both sides, first that which began first.
func (r *Recorder) endRuns() {
	up, down := r.runs['<'], r.runs['>']
	if up != nil && down != nil && down.At < up.At {
		r.endRun('>')
	}
	r.endRun('<')
	r.endRun('>')
}

func (r *Recorder) endRun(mark byte) {
	if run := r.runs[mark]; run != nil {
		delete(r.runs, mark)
		r.out(*run)
	}
}

func (r *Recorder) addPacket(mark byte, sound string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Since(r.began)
	run := r.runs[mark]
	if run != nil && run.Sound != sound {
		if r.Live {
			r.endRuns()
		}
		r.endRun(mark)
		run = nil
	}
	if run == nil {
		run = &Entry{At: now, Mark: mark, Sound: sound}
		r.runs[mark] = run
	}
	run.Packets++
	run.last = now
}

// AddEvent adds an event of the bus, and the state if that has changed.
func (r *Recorder) AddEvent(e event.Envelope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addStates(r.states.Expire(e.At))
	r.addEntry(Entry{At: e.At.Sub(r.began), Mark: '*', Text: event.Kind(e.Event) + " " + redact(r.session, encode(e.Event))})
	r.addStates(r.states.HandleEvent(e))
}

// addStates adds the states that differ from the last. r.mu is held.
func (r *Recorder) addStates(changes []agent.Change) {
	for _, c := range changes {
		if shown := c.State.At(c.At); shown != r.shown {
			r.shown = shown
			r.addEntry(Entry{At: c.At.Sub(r.began), Mark: '=', Text: string(shown)})
		}
	}
}

// Finish adds what is not in the transcript yet.
func (r *Recorder) Finish(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addStates(r.states.Expire(now))
	for _, mark := range []byte("<>") {
		r.endRun(mark)
	}
}
