package perception

import (
	"bytes"
	_ "embed" // for gestures.json
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"perch/device"
	"perch/event"
	"perch/limit"
)

//go:embed gestures.json
var gesturesFile []byte

// ErrGesture is wrapped by the errors for an invalid file of gestures.
var ErrGesture error = errors.New("not a file of gestures")

// Gestures is an immutable list of gestures.
type Gestures []Gesture

// Gesture is a movement of the head, with faces and lights.
type Gesture struct {
	Name     string     `json:"name"`
	About    string     `json:"about"`       // meaning of the gesture, for people and language models
	Duration int64      `json:"duration_ms"` // milliseconds until the robot is restored
	Frames   []Keyframe `json:"frames"`      // in the order of At
}

// Keyframe is the target of a gesture at one moment. Fields that are nil or empty leave the
// robot unchanged.
type Keyframe struct {
	At    int64   `json:"at_ms"` // milliseconds since the start of the gesture
	Yaw   *int    `json:"yaw"`   // degrees relative to the yaw before the gesture; negative: to the robot's left
	Pitch *int    `json:"pitch"` // degrees, 5-85
	Speed int     `json:"speed"` // of the head, 100-1000; 0 means the previous keyframe's speed
	Face  string  `json:"face"`  // name of an emotion
	Light *[3]int `json:"light"` // red, green and blue, 0-168 each
}

// Limits of gestures.
const (
	maxGestures         = 200 // in one Gestures value
	maxKeyframes        = 64  // of one gesture
	minGestureDuration  = 500 * time.Millisecond
	maxGestureDuration  = 10 * time.Second
	minKeyframeGap      = 100 * time.Millisecond // between two keyframes, because a robot executes one tool call at a time
	maxGestureYaw       = 90                     // degrees to either side
	defaultGestureSpeed = 300                    // until a keyframe sets a speed
	maxLight            = 168
)

// StockGestures returns the built-in gestures.
func StockGestures() Gestures {
	list, err := readGestures(gesturesFile, nil)
	if err != nil {
		panic(err) // the file is embedded and tested
	}
	return list
}

// Named returns the gesture with a name. ok is false if no gesture has this name.
func (g Gestures) Named(name string) (found Gesture, ok bool) {
	i := slices.IndexFunc(g, func(each Gesture) bool { return each.Name == name })
	if i < 0 {
		return Gesture{}, false
	}
	return g[i], true
}

// Names returns the names of the gestures.
func (g Gestures) Names() []string {
	names := make([]string, len(g))
	for i, gesture := range g {
		names[i] = gesture.Name
	}
	return names
}

// WithOwners returns the gestures of g and of the owner's *.json files in directory, which may be
// missing. A gesture in a file replaces an earlier gesture with the same name. Invalid files
// are skipped; the error names each of them. isFace reports whether an emotion exists.
func (g Gestures) WithOwners(directory string, isFace func(string) bool) (Gestures, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil {
		return g, fmt.Errorf("search for gestures: %w", err)
	}
	var faults []error
	for _, file := range files {
		text, err := os.ReadFile(file)
		var added Gestures
		if err == nil {
			added, err = readGestures(text, isFace)
		}
		if err == nil {
			g, err = g.merge(added)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", file, err))
		}
	}
	return g, errors.Join(faults...)
}

// merge returns g with the gestures of added, which replace gestures with the same names. If
// the result would have more than maxGestures, merge returns g unchanged and an error.
func (g Gestures) merge(added Gestures) (Gestures, error) {
	merged := slices.Clone(g)
	for _, gesture := range added {
		if i := slices.IndexFunc(merged, func(g Gesture) bool { return g.Name == gesture.Name }); i >= 0 {
			merged[i] = gesture
			continue
		}
		merged = append(merged, gesture)
	}
	if len(merged) > maxGestures {
		return g, fmt.Errorf("%w: with these there would be %d gestures, more than %d; take some away", ErrGesture, len(merged), maxGestures)
	}
	return merged, nil
}

// readGestures parses and checks a file of gestures. A nil isFace accepts every emotion.
func readGestures(text []byte, isFace func(string) bool) (Gestures, error) {
	if len(text) > limit.Body {
		return nil, fmt.Errorf("%w: it has more than %d bytes; write the gestures into several files", ErrGesture, limit.Body)
	}
	var file struct {
		Gestures Gestures `json:"gestures"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // reports misspelt keys
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf(
			`%w: %w; write {"gestures": [{"name", "duration_ms", "frames": [{"at_ms", "yaw", "pitch", "speed", "face", "light"}]}]}`,
			ErrGesture, err)
	}
	if d.More() {
		return nil, fmt.Errorf("%w: something follows the gestures; write one object", ErrGesture)
	}
	var c checker
	for i, g := range file.Gestures {
		g.check(&c, fmt.Sprintf("gestures[%d]", i), isFace)
		if slices.ContainsFunc(file.Gestures[:i], func(before Gesture) bool { return before.Name == g.Name }) {
			c.fault(fmt.Sprintf("gestures[%d].name", i), fmt.Errorf("%q occurs twice", g.Name))
		}
	}
	if len(c.faults) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrGesture, errors.Join(c.faults...))
	}
	return file.Gestures, nil
}

// check adds the faults of a gesture to c.
func (g Gesture) check(c *checker, key string, isFace func(string) bool) {
	if name, ok := event.GestureName(g.Name); !ok || name != g.Name {
		c.fault(key+".name", fmt.Errorf("%.80q is not a name; write 1 to 40 lower-case letters, digits, - and _", g.Name))
	}
	c.text(key+".about", g.About)
	if d := time.Duration(g.Duration) * time.Millisecond; g.Duration > maxGestureDuration.Milliseconds() || d < minGestureDuration {
		c.fault(key+".duration_ms", fmt.Errorf("%d is not from %d to %d", g.Duration, minGestureDuration.Milliseconds(), maxGestureDuration.Milliseconds()))
	}
	if n := len(g.Frames); n < 1 || n > maxKeyframes {
		c.fault(key+".frames", fmt.Errorf("there are %d; a gesture has 1 to %d", n, maxKeyframes))
	}
	last := -minKeyframeGap.Milliseconds()
	for i, f := range g.Frames {
		frameKey := fmt.Sprintf("%s.frames[%d]", key, i)
		if f.At < 0 || f.At-last < minKeyframeGap.Milliseconds() || f.At >= g.Duration {
			c.fault(frameKey+".at_ms", fmt.Errorf("%d is not within the gesture, or less than %d after the previous keyframe", f.At, minKeyframeGap.Milliseconds()))
		}
		last = f.At
		f.check(c, frameKey, isFace)
	}
}

// check adds the faults of a keyframe to c.
func (f Keyframe) check(c *checker, key string, isFace func(string) bool) {
	checkRange := func(key string, n, lower, upper int) {
		if n < lower || n > upper {
			c.fault(key, fmt.Errorf("%d is not from %d to %d", n, lower, upper))
		}
	}
	if f.Yaw != nil {
		checkRange(key+".yaw", *f.Yaw, -maxGestureYaw, maxGestureYaw)
	}
	if f.Pitch != nil {
		checkRange(key+".pitch", *f.Pitch, device.MinHeadPitch, device.MaxHeadPitch)
	}
	if f.Speed != 0 {
		checkRange(key+".speed", f.Speed, minSpeed, maxSpeed)
	}
	if f.Light != nil {
		for _, component := range f.Light {
			checkRange(key+".light", component, 0, maxLight)
		}
	}
	if f.Face != "" && isFace != nil && !isFace(f.Face) {
		c.fault(key+".face", fmt.Errorf("%.40q is no emotion of robots, such as happy, sad or surprised", f.Face))
	}
}
