// Package transcript records sessions as text, for owners who look for the cause of a problem and for tests
// that replay a session. Each line begins with the seconds since the beginning of the recording:
//
//	0.000 < {"type":"hello","version":1}     message from the robot
//	1.260 < speech 1200 ms                   sound from the robot: "speech" or "quiet", by the end-pointer or the robot's button
//	2.880 ! recognizer "what time is it"     output of an engine, or command of the appliance
//	2.880 * heard {"text":"what time is it"} event
//	2.880 = thinking                         new state of the agent
//	2.900 > {"type":"tts","state":"start"}   message to the robot
//	2.960 > 18 packets until 3.680           sound to the robot
//
// A transcript holds no sound. In messages and events, the session's ID is replaced by "S" and secrets by
// "…". Characters that control a terminal or break a line are removed.
package transcript

import (
	"fmt"
	"sync"
	"time"

	"perch/agent"
	"perch/event"
	"perch/voice"
)

// Entry is a line of a transcript. It holds a text, or a run of packets of sound.
type Entry struct {
	At   time.Duration // since the beginning of the recording
	Mark byte          // kind of line, one of < > ! * = (see the package comment)
	Text string

	Packets int           // number of packets; 0 for a text
	last    time.Duration // time of the latest packet, since the beginning of the recording
	Sound   string        // "speech" or "quiet" for sound from the robot; empty for sound to the robot
}

// String returns the line without its line break.
func (e Entry) String() string {
	if e.Sound != "" {
		e.Text = fmt.Sprintf("%s %d ms", e.Sound, e.Packets*int(voice.FrameDuration/time.Millisecond))
	} else if e.Packets > 0 {
		e.Text = fmt.Sprintf("%d packets until %.3f", e.Packets, e.last.Seconds())
	}
	return fmt.Sprintf("%9.3f %c %s", e.At.Seconds(), e.Mark, Visible(e.Text, ""))
}

// Recorder makes a transcript. Its methods may be called by any goroutine.
type Recorder struct {
	// Live makes any line end the runs of packets under way, so that lines are ordered by time. If Live is
	// false, only a line or another kind of sound with the same mark ends a run.
	Live bool

	session string
	began   time.Time
	out     func(Entry)

	mu     sync.Mutex
	runs   map[byte]*Entry // runs of packets under way, by mark
	states *agent.Follower
	shown  agent.Shown // state in the latest line with the mark =
}

// NewRecorder returns a recorder of the session with the ID session. Times count from began. The recorder
// passes each entry to out. It holds a lock during the call, so out must not call the recorder.
func NewRecorder(session string, began time.Time, out func(Entry)) *Recorder {
	return &Recorder{session: session, began: began, out: out, runs: map[byte]*Entry{}, states: agent.NewBoard().NewFollower(began), shown: agent.Idle}
}

// add adds a line at the current time.
func (r *Recorder) add(mark byte, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addEntry(Entry{At: time.Since(r.began), Mark: mark, Text: text})
}

// addEntry adds a line, after the lines of the runs of packets that end (see Live). r.mu must be held.
func (r *Recorder) addEntry(e Entry) {
	if r.Live {
		r.endRuns()
	}
	r.endRun(e.Mark)
	r.out(e)
}

// endRuns ends the runs of packets in both directions, in the order that they began. r.mu must be held.
func (r *Recorder) endRuns() {
	from, to := r.runs['<'], r.runs['>']
	if from != nil && to != nil && to.At < from.At {
		r.endRun('>')
	}
	r.endRun('<')
	r.endRun('>')
}

// endRun adds the line of a run of packets that has ended, if there is one. r.mu must be held.
func (r *Recorder) endRun(mark byte) {
	if run := r.runs[mark]; run != nil {
		delete(r.runs, mark)
		r.out(*run)
	}
}

// addPacket adds a packet to the run with a mark, or begins a new run if the sound is of another kind.
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

// AddEvent adds an event of the bus, and each new state of the agent, which the event or the passing of time
// may have caused. It leaves out moods, which are published several times a second.
func (r *Recorder) AddEvent(e event.Envelope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addStates(r.states.Expire(e.At))
	if _, isMood := e.Event.(event.Mood); !isMood {
		r.addEntry(Entry{At: e.At.Sub(r.began), Mark: '*', Text: event.Kind(e.Event) + " " + redact(r.session, encode(e.Event))})
	}
	r.addStates(r.states.HandleEvent(e))
}

// addStates adds each state that differs from the one before it. r.mu must be held.
func (r *Recorder) addStates(changes []agent.Change) {
	for _, c := range changes {
		if shown := c.State.At(c.At); shown != r.shown {
			r.shown = shown
			r.addEntry(Entry{At: c.At.Sub(r.began), Mark: '=', Text: string(shown)})
		}
	}
}

// Finish adds the lines of runs that have not ended, and of states that have changed only because time has
// passed.
func (r *Recorder) Finish(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addStates(r.states.Expire(now))
	for _, mark := range []byte("<>") {
		r.endRun(mark)
	}
}
