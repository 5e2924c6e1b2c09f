package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"perch/event"
)

// vmc is a program with the Virtual Motion Capture protocol, such as VirtualMotionCapture, VSeeFace
// or Warudo. The protocol calls such a program a performer (https://protocol.vmc.info/performer-spec).
// It receives weights of blend shapes by Open Sound Control, and applies them when it receives an apply
// message.
type vmc struct{ *programConfig }

// OSC addresses of the protocol.
const (
	vmcValue = "/VMC/Ext/Blend/Val"
	vmcApply = "/VMC/Ext/Blend/Apply"
)

// Intervals and limits of sending.
const (
	vmcTick        = 100 * time.Millisecond // interval while weights move
	vmcRepeatEvery = 2 * time.Second        // interval of repeating all weights, because datagrams may be lost
	vmcStride      = 0.34                   // maximum change of a weight in a tick: a face changes in 3 ticks, or 0.3 s
	maxShapes      = 64                     // blend shapes in the words
	maxPacket      = 1400                   // bytes; the protocol requires less than 1500
)

// vmcKind returns the kind of programs with the VMC protocol. Its words are VRM 0's names of blend
// shapes, which the protocol requires; programs convert them to names of VRM 1. The words have the
// exact upper and lower case, because some programs distinguish it.
func vmcKind() kind {
	k := kind{
		Kind: Kind{Name: "vmc", Title: "VMC protocol", URL: "udp://127.0.0.1:39540",
			Shows: []string{"states", "faces", "moods", "mouth"}},
		schemes: []string{"udp"}, port: true,
		words: map[string]string{"mouth": "A", "state.sleeping": "Blink"},
		make:  newVMC,
	}
	for shape, faces := range map[string]string{
		"Joy": "happy laughing funny loving delicious kissy silly", "Angry": "angry", "Sorrow": "sad crying shocked",
		"Fun": "winking cool relaxed confident", "Surprised": "surprised", "": "neutral embarrassed thinking sleepy confused",
	} {
		for face := range strings.FieldsSeq(faces) {
			k.words["face."+face] = shape
		}
	}
	for morph := range morphs(event.Morphs{}) {
		k.words["morph."+morph] = capitalize(morph)
	}
	// The other morphs have the names of Apple's 52 blend shapes, but Apple has no smile or frown of
	// both sides together.
	k.words["morph.mouthSmile"], k.words["morph.mouthFrown"] = "MouthSmileLeft,MouthSmileRight", "MouthFrownLeft,MouthFrownRight"
	k.words["morph.mouthOpen"], k.words["morph.eyesClosed"] = "", "Blink"
	return k
}

// morphs returns the weights in a mood. The keys are the JSON names of the fields of event.Morphs.
func morphs(m event.Morphs) (weights map[string]float64) {
	text, err := json.Marshal(m)
	if err == nil {
		err = json.Unmarshal(text, &weights)
	}
	if err != nil {
		return nil // impossible, since all fields are numbers
	}
	return weights
}

// newVMC checks the number of blend shapes in the words.
func newVMC(o *programConfig) (program, error) {
	shapes := map[string]bool{}
	for _, word := range o.words.table {
		for name := range shapesOf(word) {
			shapes[name] = true
		}
	}
	if len(shapes) > maxShapes {
		return nil, fmt.Errorf("words contain %d blend shapes, more than %d", len(shapes), maxShapes)
	}
	return vmc{o}, nil
}

// shapesOf returns an iterator over the blend shapes in a word. The word separates them by commas.
func shapesOf(word string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range strings.SplitSeq(word, ",") {
			if name = strings.TrimSpace(name); name != "" && !yield(name) {
				return
			}
		}
	}
}

func (p vmc) open(ctx context.Context, _ func(error)) (link, error) {
	d, err := openDatagrams(ctx, p.URL, oscBundle(oscMessage(vmcApply)))
	if err != nil {
		return nil, err
	}
	return &vmcLink{datagrams: d, words: p.words, current: map[string]float64{}, goal: map[string]float64{}}, nil
}

// vmcLink is a link to a program with the VMC protocol.
type vmcLink struct {
	*datagrams
	words   words
	current map[string]float64 // current weights; key: blend shape
	goal    map[string]float64 // weights that current moves towards, except those for the mouth
	level   float64            // how far the mouth is open, from 0 to 1
	sent    time.Time          // when the weights were last sent
}

// weights returns the weights for a scene, from 0 to 1. The key is the blend shape. If a blend shape
// is in several words, the greatest weight counts.
func (l *vmcLink) weights(s Scene) map[string]float64 {
	weights := map[string]float64{}
	add := func(word string, x float64) {
		for name := range shapesOf(word) {
			if x = min(max(x, 0), 1); x > weights[name] {
				weights[name] = x
			}
		}
	}
	add(l.words.face(s.Expression()), 1)
	add(l.words.state(s.State), 1)
	for morph, x := range morphs(s.Mood.Morphs) {
		add(l.words.get("morph."+morph), x)
	}
	for feeling, x := range strengths(s.Mood.Feelings) {
		add(l.words.feeling(feeling), x)
	}
	return weights
}

// move moves the weights towards the goals: weights of the mouth at once, others by at most stride.
// It returns false if no weight has moved.
func (l *vmcLink) move(stride float64) (moved bool) {
	goal := maps.Clone(l.goal)
	mouth := map[string]bool{}
	for name := range shapesOf(l.words.get("mouth")) {
		mouth[name] = true
		goal[name] = max(goal[name], l.level)
	}
	for name := range l.current {
		goal[name] += 0 // a weight that has no goal any more gets the goal 0
	}
	for name, to := range goal {
		from := l.current[name]
		switch step := min(max(to-from, -stride), stride); {
		case from == to:
			continue
		case mouth[name] || step == to-from:
			l.current[name], moved = to, true
		case step != 0:
			l.current[name], moved = from+step, true
		}
	}
	return moved
}

// sendWeights sends all weights and the apply message, in as many bundles as needed.
func (l *vmcLink) sendWeights() error {
	l.sent = time.Now()
	var messages, packets []string
	size := 0
	for _, name := range slices.Sorted(maps.Keys(l.current)) {
		m := oscMessage(vmcValue, oscText(name), oscFloat(l.current[name]))
		if size += len(m) + 4; size > maxPacket {
			packets, messages, size = append(packets, oscBundle(messages...)), nil, len(m)+4
		}
		messages = append(messages, m)
	}
	return l.send(append(packets, oscBundle(append(messages, oscMessage(vmcApply))...))...)
}

// update sets the goals. refresh then moves the weights towards them. The first scene of a connection
// is shown at once.
func (l *vmcLink) update(_ context.Context, scene, previous Scene) error {
	if l.goal = l.weights(scene); previous == (Scene{}) && l.move(1) {
		return l.sendWeights()
	}
	return nil
}

func (l *vmcLink) setMouth(_ context.Context, level float64) error {
	l.level = hundredths(level)
	if l.move(0) {
		return l.sendWeights()
	}
	return nil
}

func (l *vmcLink) refreshEvery() time.Duration { return vmcTick }

func (l *vmcLink) refresh(context.Context, Scene) error {
	if l.move(vmcStride) || time.Since(l.sent) >= vmcRepeatEvery-vmcTick/2 { // the tick nearest to the end of the interval
		return l.sendWeights()
	}
	return nil
}

// close sets all weights to 0, so that the program no longer shows the last face, and closes the
// connection.
func (l *vmcLink) close() {
	for name := range l.current {
		l.current[name] = 0
	}
	_ = l.sendWeights() // the program may have ended
	l.datagrams.close()
}
