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

// vmc is a performer of the Virtual Motion Capture protocol, such as VirtualMotionCapture,
// VSeeFace or Warudo. It receives blend shape weights by Open Sound Control, and an apply
// message makes them effective (https://protocol.vmc.info/performer-spec).
type vmc struct{ *programConfig }

// The OSC addresses of the protocol.
const (
	vmcValue = "/VMC/Ext/Blend/Val"
	vmcApply = "/VMC/Ext/Blend/Apply"
)

// Bounds of what is sent.
const (
	vmcTick    = 100 * time.Millisecond // while something moves
	vmcAgain   = 2 * time.Second        // all weights are sent again: datagrams get lost
	vmcStride  = 0.34                   // how far a weight moves in a tick: a face comes and goes in 0.3 s
	mostShapes = 64
	mostPacket = 1400 // bytes: the protocol wants less than 1500
)

// vmcKind uses the names of VRM 0, which every sender must send; programs derive those of VRM
// 1. Names are case-sensitive in some programs.
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
		k.words["morph."+morph] = capital(morph)
	}
	// Apple's 52 shapes have these for each side only.
	k.words["morph.mouthSmile"], k.words["morph.mouthFrown"] = "MouthSmileLeft,MouthSmileRight", "MouthFrownLeft,MouthFrownRight"
	k.words["morph.mouthOpen"], k.words["morph.eyesClosed"] = "", "Blink"
	return k
}

// morphs returns a mood's weights by name.
func morphs(m event.Morphs) (all map[string]float64) {
	text, err := json.Marshal(m)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil // cannot happen: a struct of numbers
	}
	return all
}

func newVMC(o *programConfig) (program, error) {
	shapes := map[string]bool{}
	for _, word := range o.words.table {
		for name := range shapesOf(word) {
			shapes[name] = true
		}
	}
	if len(shapes) > mostShapes {
		return nil, fmt.Errorf("words name %d blend shapes; at most %d are sent", len(shapes), mostShapes)
	}
	return vmc{o}, nil
}

// shapesOf yields the blend shapes of a word, which are separated by commas.
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
	return &vmcLink{datagrams: d, words: p.words, is: map[string]float64{}, goal: map[string]float64{}}, nil
}

type vmcLink struct {
	*datagrams
	words words
	is    map[string]float64 // weights as sent, without weights that were never above 0
	goal  map[string]float64 // the weights to reach
	level float64            // of the mouth
	sent  time.Time
}

// weights returns the weights for a scene. Where two words name the same shape, the greater
// weight counts.
func (l *vmcLink) weights(s Scene) map[string]float64 {
	all := map[string]float64{}
	add := func(word string, x float64) {
		for name := range shapesOf(word) {
			if x = min(max(x, 0), 1); x > all[name] {
				all[name] = x
			}
		}
	}
	add(l.words.face(s.Expression()), 1)
	add(l.words.state(s.State), 1)
	for morph, x := range morphs(s.Mood.Morphs) {
		add(l.words.of("morph."+morph), x)
	}
	for feeling, x := range strengths(s.Mood.Feelings) {
		add(l.words.feeling(feeling), x)
	}
	return all
}

// move moves the weights towards their goals by at most stride, the mouth at once, and reports
// whether one has moved.
func (l *vmcLink) move(stride float64) (moved bool) {
	goal := maps.Clone(l.goal)
	mouth := map[string]bool{}
	for name := range shapesOf(l.words.of("mouth")) {
		mouth[name] = true
		goal[name] = max(goal[name], l.level)
	}
	for name := range l.is {
		goal[name] += 0 // unwanted weights return to 0
	}
	for name, to := range goal {
		from := l.is[name]
		switch step := min(max(to-from, -stride), stride); {
		case from == to:
			continue
		case mouth[name] || step == to-from:
			l.is[name], moved = to, true
		case step != 0:
			l.is[name], moved = from+step, true
		}
	}
	return moved
}

// sendWeights sends all weights and the apply message, in one bundle if they fit a datagram.
func (l *vmcLink) sendWeights() error {
	l.sent = time.Now()
	var messages, packets []string
	size := 0
	for _, name := range slices.Sorted(maps.Keys(l.is)) {
		m := oscMessage(vmcValue, oscText(name), oscFloat(l.is[name]))
		if size += len(m) + 4; size > mostPacket {
			packets, messages, size = append(packets, oscBundle(messages...)), nil, len(m)+4
		}
		messages = append(messages, m)
	}
	return l.send(append(packets, oscBundle(append(messages, oscMessage(vmcApply))...))...)
}

// update sets the goals; refresh moves the weights. A new connection gets the scene at once.
func (l *vmcLink) update(_ context.Context, is, was Scene) error {
	if l.goal = l.weights(is); was == (Scene{}) && l.move(1) {
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
	if l.move(vmcStride) || time.Since(l.sent) >= vmcAgain-vmcTick/2 { // the nearest tick
		return l.sendWeights()
	}
	return nil
}

// close relaxes the face: the last weights sent would stay.
func (l *vmcLink) close() {
	for name := range l.is {
		l.is[name] = 0
	}
	_ = l.sendWeights() // the program may be gone
	l.datagrams.close()
}
