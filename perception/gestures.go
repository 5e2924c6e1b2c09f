package perception

import (
	"bytes"
	_ "embed" // the gestures that Perch comes with
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Gestures are the known gestures, in the order of offers. The value is immutable.
type Gestures struct{ all []Gesture }

// Gesture is a movement of head, face and lights.
type Gesture struct {
	Name     string     `json:"name"`
	About    string     `json:"about"`       // its meaning; text for people and models
	Duration int64      `json:"duration_ms"` // milliseconds until the robot is restored
	Frames   []Keyframe `json:"frames"`      // in the order of At
}

// Keyframe is the target of a gesture at one moment. Nil fields stay unchanged.
type Keyframe struct {
	At    int64   `json:"at_ms"` // milliseconds since the gesture began
	Yaw   *int    `json:"yaw"`   // degrees from where the head looked; negative is the robot's own left
	Pitch *int    `json:"pitch"` // degrees, 5-85
	Speed int     `json:"speed"` // of the head, 100-1000; 0 means as in the previous keyframe
	Face  string  `json:"face"`  // an emotion of robots
	Light *[3]int `json:"light"` // red, green and blue, 0-168 each
}

// Bounds of gestures.
const (
	mostGestures     = 200                    // in all
	mostGestureFiles = 100                    // in the owner's directory
	mostFrames       = 64                     // of one gesture
	leastGesture     = 500 * time.Millisecond // the shortest duration
	mostGesture      = 10 * time.Second
	leastFrame       = 100 * time.Millisecond // between two keyframes: a robot executes one call at a time
	gestureYaw       = 90                     // degrees to either side
	gestureSpeed     = 300                    // if no keyframe sets one
	mostLight        = 168
)

// StockGestures returns the built-in gestures.
func StockGestures() Gestures {
	all, err := readGestures(bytes.NewReader(gesturesFile), nil)
	if err != nil {
		panic(err) // the file is compiled in, and tested
	}
	return Gestures{all}
}

// Named returns the gesture of a name; ok is false if it is unknown.
func (g Gestures) Named(name string) (Gesture, bool) {
	i := slices.IndexFunc(g.all, func(one Gesture) bool { return one.Name == name })
	if i < 0 {
		return Gesture{}, false
	}
	return g.all[i], true
}

// Names returns the names of the gestures.
func (g Gestures) Names() []string {
	names := make([]string, len(g.all))
	for i, one := range g.all {
		names[i] = one.Name
	}
	return names
}

// All returns the gestures. Callers must not modify them.
func (g Gestures) All() []Gesture { return g.all }

// WithOwners returns the gestures with those of a directory's *.json files, which
// replace others of the same names. Invalid files are left out and reported in an error
// that wraps ErrGesture and names the file. The directory may be missing. isFace reports
// whether a face is known.
func (g Gestures) WithOwners(directory string, isFace func(string) bool) (Gestures, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil {
		return g, fmt.Errorf("look for gestures: %w", err)
	}
	var faults []error
	if len(files) > mostGestureFiles {
		faults = append(faults, fmt.Errorf("%w: %s has more than %d files; those after %s are left out", ErrGesture, directory, mostGestureFiles,
			filepath.Base(files[mostGestureFiles-1])))
		files = files[:mostGestureFiles]
	}
	all := slices.Clone(g.all)
	for _, file := range files {
		more, err := readGestureFile(file, isFace)
		if err == nil {
			all, err = merge(all, more)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", file, err))
		}
	}
	return Gestures{all}, errors.Join(faults...)
}

// merge replaces gestures by name, and appends the new ones.
func merge(all, more []Gesture) ([]Gesture, error) {
	merged := slices.Clone(all)
	for _, one := range more {
		if i := slices.IndexFunc(merged, func(g Gesture) bool { return g.Name == one.Name }); i >= 0 {
			merged[i] = one
			continue
		}
		merged = append(merged, one)
	}
	if len(merged) > mostGestures {
		return all, fmt.Errorf("%w: with these there would be %d gestures, more than %d; take some away", ErrGesture, len(merged), mostGestures)
	}
	return merged, nil
}

func readGestureFile(file string, isFace func(string) bool) ([]Gesture, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGesture, err)
	}
	defer f.Close()
	return readGestures(f, isFace)
}

// readGestures parses and checks a file of gestures. A nil isFace accepts all faces.
func readGestures(r io.Reader, isFace func(string) bool) ([]Gesture, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit.Body+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGesture, err)
	}
	if len(text) > limit.Body {
		return nil, fmt.Errorf("%w: it has more than %d bytes; write the gestures into several files", ErrGesture, limit.Body)
	}
	var read struct {
		Gestures []Gesture `json:"gestures"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // otherwise a misspelt key would go unnoticed
	if err := d.Decode(&read); err != nil {
		return nil, fmt.Errorf(
			`%w: %w; write {"gestures": [{"name", "duration_ms", "frames": [{"at_ms", "yaw", "pitch", "speed", "face", "light"}]}]}`,
			ErrGesture, err)
	}
	if d.More() {
		return nil, fmt.Errorf("%w: something follows the gestures; write one object", ErrGesture)
	}
	var c checker
	for i, g := range read.Gestures {
		g.check(&c, fmt.Sprintf("gestures[%d]", i), isFace)
		if slices.ContainsFunc(read.Gestures[:i], func(before Gesture) bool { return before.Name == g.Name }) {
			c.fault(fmt.Sprintf("gestures[%d].name", i), fmt.Errorf("%q is there twice", g.Name))
		}
	}
	if len(c.faults) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrGesture, errors.Join(c.faults...))
	}
	return read.Gestures, nil
}

func (g Gesture) check(c *checker, key string, isFace func(string) bool) {
	if name, ok := event.GestureName(g.Name); !ok || name != g.Name {
		c.fault(key+".name", fmt.Errorf("%.80q is no name; it has 1 to 40 small letters, digits, - and _", g.Name))
	}
	c.text(key+".about", g.About)
	if d := time.Duration(g.Duration) * time.Millisecond; g.Duration > mostGesture.Milliseconds() || d < leastGesture {
		c.fault(key+".duration_ms", fmt.Errorf("%d is not from %d to %d", g.Duration, leastGesture.Milliseconds(), mostGesture.Milliseconds()))
	}
	if n := len(g.Frames); n < 1 || n > mostFrames {
		c.fault(key+".frames", fmt.Errorf("there are %d; a gesture has 1 to %d", n, mostFrames))
	}
	last := -leastFrame.Milliseconds()
	for i, f := range g.Frames {
		at := fmt.Sprintf("%s.frames[%d]", key, i)
		if f.At < 0 || f.At-last < leastFrame.Milliseconds() || f.At >= g.Duration {
			c.fault(at+".at_ms", fmt.Errorf("%d is not within the gesture, or not %d after the keyframe before", f.At, leastFrame.Milliseconds()))
		}
		last = f.At
		f.check(c, at, isFace)
	}
}

func (f Keyframe) check(c *checker, key string, isFace func(string) bool) {
	within := func(key string, n, least, most int) {
		if n < least || n > most {
			c.fault(key, fmt.Errorf("%d is not from %d to %d", n, least, most))
		}
	}
	if f.Yaw != nil {
		within(key+".yaw", *f.Yaw, -gestureYaw, gestureYaw)
	}
	if f.Pitch != nil {
		within(key+".pitch", *f.Pitch, device.MinHeadPitch, device.MaxHeadPitch)
	}
	if f.Speed != 0 {
		within(key+".speed", f.Speed, leastSpeed, mostSpeed)
	}
	if f.Light != nil {
		for _, part := range f.Light {
			within(key+".light", part, 0, mostLight)
		}
	}
	if f.Face != "" && isFace != nil && !isFace(f.Face) {
		c.fault(key+".face", fmt.Errorf("%.40q is no emotion of robots, such as happy, sad or surprised", f.Face))
	}
}
