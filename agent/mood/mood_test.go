package mood

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perch/event"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s is %v, not %v", what, got, want)
	}
}

func felt(happened Stimulus) State { return Step(State{}, happened, 0) }

// pass returns a state after some seconds without a stimulus.
func pass(s State, seconds float64) State { return Step(s, Stimulus{}, seconds) }

// of returns the zero State after an event.
func of(t *testing.T, e event.Event) State {
	t.Helper()
	s, ok := Of(e)
	if !ok {
		t.Fatalf("%#v does nothing", e)
	}
	return felt(s)
}

// TestDecay tests that each feeling decreases linearly to zero, at a certain rate.
func TestDecay(t *testing.T) {
	for f, want := range map[Feeling]struct{ rate, zero float64 }{
		Concern: {.08, 12.5}, Celebration: {.18, 1 / .18}, Patience: {.035, 1 / .035},
		Curiosity: {.12, 1 / .12}, Empathy: {.055, 1 / .055}, Uncertain: {.1, 10},
	} {
		full := felt(raise(f, 1))
		near(t, f.String()+" after a second", pass(full, 1).feelings[f], 1-want.rate)
		near(t, f.String()+" at half its time", pass(full, want.zero/2).feelings[f], .5)
		near(t, f.String()+" at its end", pass(full, want.zero).feelings[f], 0)
		if pass(full, want.zero*.99).feelings[f] == 0 {
			t.Errorf("%s is gone before its time", f)
		}
	}
}

func TestStimuli(t *testing.T) {
	half, bad, little := .5, -.5, .1
	feels := func(f ...float64) [feelings]float64 { return [feelings]float64(f) } // in the order of Concern to Uncertain
	for name, c := range map[string]struct {
		state State
		want  [feelings]float64
	}{
		"a good sentence":         {felt(Spoken(Sentiment{Valence: .5}, 1)), feels(0, .35, 0, 0, 0, 0)},
		"one not good enough":     {felt(Spoken(Sentiment{Valence: .3}, 1)), feels(0, 0, 0, 0, 0, 0)},
		"a bad sentence":          {felt(Spoken(Sentiment{Valence: -.5}, 1)), feels(.4, 0, 0, 0, 0, 0)},
		"one not bad enough":      {felt(Spoken(Sentiment{Valence: -.2}, 1)), feels(0, 0, 0, 0, 0, 0)},
		"a lively one":            {felt(Spoken(Sentiment{Arousal: .8}, 1)), feels(0, 0, 0, .4, 0, 0)},
		"not lively enough":       {felt(Spoken(Sentiment{Arousal: .5}, 1)), feels(0, 0, 0, 0, 0, 0)},
		"an unsure one":           {felt(Spoken(Sentiment{Uncertain: .5}, 1)), feels(0, 0, 0, 0, 0, .2)},
		"a skill begins":          {of(t, event.SkillStarted{}), feels(0, 0, .4, 0, 0, 0)},
		"done, and well":          {of(t, event.SkillDone{Sentiment: &half}), feels(0, .4, 0, 0, 0, 0)},
		"done, and badly":         {of(t, event.SkillDone{Sentiment: &bad}), feels(.35, 0, 0, 0, 0, 0)},
		"done, so so":             {of(t, event.SkillDone{Sentiment: &little}), feels(0, 0, 0, 0, 0, 0)},
		"done":                    {of(t, event.SkillDone{}), feels(0, .4, 0, 0, 0, 0)},
		"failed":                  {of(t, event.SkillFailed{}), feels(.7, 0, 0, 0, .25, 0)},
		"a model is loaded":       {of(t, event.LoadStarted{}), feels(0, 0, .6, .3, 0, 0)},
		"it is there":             {of(t, event.LoadEnded{}), feels(0, .7, 0, .5, 0, 0)},
		"it is not":               {of(t, event.LoadEnded{Error: "404"}), feels(.8, 0, 0, 0, 0, 0)},
		"two errors":              {of(t, event.Validated{Errors: 2}), feels(.6, 0, 0, 0, 0, 0)},
		"twenty errors":           {of(t, event.Validated{Errors: 20}), feels(.95, 0, 0, 0, 0, 0)},
		"warnings":                {of(t, event.Validated{Warnings: 4}), feels(.3, 0, 0, 0, 0, 0)},
		"clean":                   {of(t, event.Validated{}), feels(0, .85, 0, 0, 0, 0)},
		"an emote":                {of(t, event.Emote{Trigger: "empathy", Weight: .2}), feels(0, 0, 0, 0, .2, 0)},
		"an emote of no weight":   {of(t, event.Emote{Trigger: "concern"}), feels(0, 0, 0, 0, 0, 0)},
		"an emote of too much":    {of(t, event.Emote{Trigger: "concern", Weight: 99}), feels(1, 0, 0, 0, 0, 0)},
		"a look":                  {of(t, event.LookAt{Target: "user"}), feels(0, 0, 0, .3, 0, 0)},
		"a look at a face":        {of(t, event.LookAt{Target: "user", By: event.ByRobot}), feels(0, 0, 0, 0, 0, 0)},
		"an interruption":         {Step(felt(raise(Patience, 1)), Interrupted(), 0), feels(0, 0, 0, .5, 0, 0)},
		"a word of a person":      {of(t, event.Heard{}), feels(0, 0, 0, .07, 0, 0)},
		"a face":                  {of(t, event.Perceived{Name: "face_detected"}), feels(0, 0, 0, 0, 0, 0)},
		"the first face, .6 s on": {pass(of(t, event.Perceived{Name: "face_detected"}), .6), feels(0, .4, 0, .9, 0, 0)},
	} {
		for f, want := range c.want {
			near(t, name+": "+Feeling(f).String(), c.state.feelings[f], want)
		}
	}
}

// TestOnlyTheFirstFace tests that a second face raises no feelings.
func TestOnlyTheFirstFace(t *testing.T) {
	s := Step(pass(felt(FaceSeen(nil)), 1), FaceSeen(nil), 100)
	if s = pass(s, .6); s.feelings != [feelings]float64{} {
		t.Errorf("a second face raised %v", s.Feelings())
	}
}

// TestEmpathyGrowsWithEachFailure tests that successive failures raise more and more empathy, at
// most .9, and that a success ends the streak.
func TestEmpathyGrowsWithEachFailure(t *testing.T) {
	s := State{}
	for i, want := range []float64{.25, .5, .75, .9, .9} {
		s.feelings = [feelings]float64{}
		s = Step(s, Failed(), 0)
		near(t, "empathy of failure "+string(rune('1'+i)), s.feelings[Empathy], want)
	}
	s = Step(s, Done(nil), 100)
	near(t, "empathy after a success", Step(s, Failed(), 0).feelings[Empathy], .25)
}

func TestMorphs(t *testing.T) {
	settled := func(f Feeling) event.Morphs {
		s := State{}
		s.feelings[f] = 1
		return s.targetMorphs().event()
	}
	for f, want := range map[Feeling]event.Morphs{
		Concern:     {MouthFrown: .55, BrowInnerUp: .6, NoseSneerLeft: .15, NoseSneerRight: .15},
		Celebration: {MouthSmile: .85, MouthOpen: .2, CheekPuff: .2},
		Patience:    {EyesClosed: .15},
		Curiosity:   {BrowOuterUpLeft: .7, BrowOuterUpRight: .5},
		Empathy:     {BrowInnerUp: .5, EyeSquintLeft: .4, EyeSquintRight: .4},
		Uncertain:   {MouthPressLeft: .35, MouthPressRight: .35, BrowInnerUp: .45},
	} {
		if got := settled(f); got != want {
			t.Errorf("the face of %s is %+v, not %+v", f, got, want)
		}
	}
	both := State{}
	both.feelings[Concern], both.feelings[Empathy], both.feelings[Uncertain] = .5, 1, 1
	near(t, "the brow of three feelings", both.targetMorphs()[browInnerUp], .5)
	s := State{feelings: [feelings]float64{Celebration: 1}}
	near(t, "a smile on its way", pass(s, .1).morphs[mouthSmile], (1-.018)*.85*.4)
}

func TestPresets(t *testing.T) {
	for name, want := range map[string]event.Morphs{
		"neutral":   {},
		"happy":     {MouthSmile: 1, BrowInnerUp: .3, CheekSquintLeft: .4, CheekSquintRight: .4},
		"sad":       {MouthFrownLeft: .8, MouthFrownRight: .8, BrowDownLeft: .6, BrowDownRight: .6},
		"surprised": {JawOpen: .5, EyeWideLeft: .8, EyeWideRight: .8, BrowInnerUp: .9},
		"confused":  {BrowInnerUp: .5, BrowOuterUpLeft: .4, MouthPressLeft: .3, MouthPressRight: .3},
		"focused":   {BrowDownLeft: .4, BrowDownRight: .4, EyeSquintLeft: .3, EyeSquintRight: .3},
	} {
		p, ok := PresetNamed(name)
		if got := p.expression().morphs.event(); !ok || got != want {
			t.Errorf("%s is %+v, not %+v", name, got, want)
		}
	}
	if _, ok := Of(event.Expression{Preset: "furious", Intensity: 1}); ok {
		t.Error("an unknown preset does something")
	}
}

// run advances a state in steps of a tenth of a second.
func run(s State, seconds float64) State {
	for range int(math.Round(seconds * 10)) {
		s = pass(s, .1)
	}
	return s
}

// TestExpressionIsALayer tests that an expression hides the feelings without changing them, and
// that it ends after its time or with Plain.
func TestExpressionIsALayer(t *testing.T) {
	sadly := felt(raise(Concern, 1))
	s := run(Step(sadly, Express(Happy, 1), 0), 3)
	if m := s.Mood(); m.Morphs.MouthSmile < .99 || m.Morphs.MouthFrown > .01 || m.Face != "happy" {
		t.Errorf("a happy expression over concern shows %+v", m)
	}
	without := run(sadly, 3)
	if s.feelings != without.feelings || s.morphs != without.morphs {
		t.Error("the expression has changed what lies under it")
	}
	s, without = run(s, 4), run(without, 4)
	if m := s.Mood(); m.Face != "sad" || m.Dominant != without.Mood().Dominant ||
		math.Abs(m.Morphs.MouthFrown-without.Mood().Morphs.MouthFrown) > .02 {
		t.Errorf("after its time it has not faded: %+v", m)
	}
	again := run(Step(run(Step(sadly, Express(Happy, 1), 0), 1), Express(Plain, 1), 0), 2)
	if got := again.Mood(); got.Morphs.MouthSmile > .01 || got.Face != "sad" {
		t.Errorf("neutral did not take it away: %+v", got)
	}
}

func TestHead(t *testing.T) {
	s := State{feelings: [feelings]float64{Concern: .5, Patience: .5, Curiosity: .5, Empathy: .5}}
	near(t, "tilt", s.targetTilt(), .5*12+.5*9+.5*4)
	near(t, "lean", s.targetLean(), .5*(.03-.02)*180/math.Pi)
	one := pass(State{feelings: [feelings]float64{Curiosity: 1}}, .1)
	near(t, "tilt on its way", one.tilt, .988*12*.3)
	near(t, "lean on its way", one.lean, .988*.03*180/math.Pi*.2)
	far := State{tilt: 90, lean: -90, yaw: 90}
	if got, want := far.Head(), (event.HeadPose{Tilt: 25, Lean: -25, Yaw: 45}); got != want {
		t.Errorf("a head is turned to %v", got)
	}
	near(t, "yaw in a frame of 60 a second", pass(of(t, event.ThinkingStarted{}), 1./60).yaw, -.15*180/math.Pi*.08)
	thinks := run(of(t, event.ThinkingStarted{}), 3)
	near(t, "the yaw of one who thinks", thinks.Head().Yaw, -.15*180/math.Pi)
	near(t, "and of one who sees a face", run(Step(thinks, FaceSeen(json.RawMessage(`{"yaw":20}`)), 0), 3).Head().Yaw, 20)
	near(t, "in front", run(Step(thinks, FaceSeen(json.RawMessage(`{}`)), 0), 3).Head().Yaw, 0)
	near(t, "and of one who speaks", run(Step(thinks, Spoken(Sentiment{}, 1), 0), 3).Head().Yaw, 0)
}

func TestTalking(t *testing.T) {
	near(t, "two words", TalkFor(2), 1.5)
	near(t, "ten words", TalkFor(10), 3)
	s := run(felt(Spoken(Sentiment{}, TalkFor(10))), 2.9)
	near(t, "the mouth that talks", s.Mood().Morphs.MouthOpen, .4)
	if s = run(s, 2); s.Mood().Morphs.MouthOpen != 0 {
		t.Error("the mouth stays open")
	}
}

func TestStartle(t *testing.T) {
	s := run(felt(Interrupted()), .5)
	if m := s.Mood().Morphs; m.BrowInnerUp < .75 || m.MouthOpen < .25 {
		t.Errorf("one that is interrupted shows %+v", m)
	}
	near(t, "the brow that it wants", s.targetMorphs()[browInnerUp], .9)
	near(t, "and the mouth", s.targetMorphs()[mouthOpen], .3)
	if m := run(s, .2).targetMorphs(); m[browInnerUp] != 0 || m[mouthOpen] != 0 {
		t.Error("a startle lasts longer than .6 s")
	}
}

func TestGestures(t *testing.T) {
	for _, c := range []struct {
		celebration, concern, curiosity float64
		want                            Gesture
	}{
		{.61, .9, .9, Gesture{"celebrate", 2}},
		{.6, .61, .9, Gesture{"concern", 2}},
		{.6, .6, .61, Gesture{"think", 1.5}},
		{.6, .6, .6, Gesture{}},
	} {
		s := felt(raise(Celebration, c.celebration).and(Concern, c.concern).and(Curiosity, c.curiosity))
		if s.Gesture() != c.want {
			t.Errorf("%+v begins %v", c, s.Gesture())
		}
	}
	s := felt(raise(Concern, 1))
	if s = pass(s, 1.9); s.Gesture().Name != "" {
		t.Error("a gesture begins while another is being made")
	}
	if s = pass(s, .11); s.Gesture().Name != "concern" {
		t.Error("a feeling that stays strong makes no second gesture")
	}
	made, _ := Of(event.Gesture{Name: "wave", Duration: 3000, By: event.ByModel})
	if s := Step(felt(made), raise(Celebration, 1), 0); s.Gesture().Name != "" || s.busyLeft != 3 {
		t.Error("it waves and celebrates at once")
	}
}

// TestGesturesWithAModel tests the gestures that start when a viewer loads or validates a model,
// and that none starts during another gesture.
func TestGesturesWithAModel(t *testing.T) {
	for _, c := range []struct {
		event event.Event
		want  Gesture
	}{
		{event.LoadStarted{URI: "m"}, Gesture{"think", 2}},
		{event.LoadEnded{URI: "m"}, Gesture{"nod", 1}},
		{event.LoadEnded{URI: "m", Error: "gone"}, Gesture{"concern", 2}}, // concern is .8
		{event.Validated{}, Gesture{"celebrate", 1.5}},
		{event.Validated{Warnings: 1}, Gesture{}},
		{event.Validated{Errors: 1}, Gesture{}}, // concern is .5
	} {
		s, _ := Of(c.event)
		if got := felt(s).Gesture(); got != c.want {
			t.Errorf("%+v begins %v, not %v", c.event, got, c.want)
		}
		waves, _ := Of(event.Gesture{Name: "wave", By: event.ByModel})
		if got := Step(felt(waves), s, 0).Gesture(); got.Name != "" {
			t.Errorf("%+v begins %v while it waves", c.event, got)
		}
	}
}

// TestFoundErrorsAreOfTheStreak tests that a validation with errors prolongs the streak of
// failures by one, without raising empathy before the next failure.
func TestFoundErrorsAreOfTheStreak(t *testing.T) {
	s := felt(validated(3, 0))
	if got := s.Feelings(); got.Empathy != 0 || math.Abs(got.Concern-.7) > 1e-9 {
		t.Errorf("three errors are felt as %+v", got)
	}
	if got := Step(s, Failed(), 0).Feelings().Empathy; got != .5 {
		t.Errorf("a failure after them has empathy %v, not .5", got)
	}
}

// TestHysteresis tests that a dominant feeling is replaced only by one that is stronger by more
// than .15, and not within a second.
func TestHysteresis(t *testing.T) {
	s := felt(raise(Concern, .7))
	if s.Dominant() != Concern || s.Face() != "sad" {
		t.Fatalf("concern shows as %s, %s", s.Dominant(), s.Face())
	}
	soon := Step(s, raise(Celebration, 1), .5)
	if soon.Dominant() != Concern {
		t.Error("it changed within a second")
	}
	if s = Step(s, raise(Celebration, .76), 1); s.Dominant() != Concern { // concern is .62 now
		t.Error("it changed for .14 more")
	}
	if s = Step(s, raise(Celebration, .2), 0); s.Dominant() != Celebration || s.Face() != "happy" {
		t.Error("it did not change for .34 more")
	}
}

func TestFaces(t *testing.T) {
	for f, face := range map[Feeling]string{Neutral: "neutral", Concern: "sad", Celebration: "happy", Patience: "relaxed",
		Curiosity: "thinking", Empathy: "loving", Uncertain: "confused"} {
		if f.face() != face {
			t.Errorf("%s looks %s", f, f.face())
		}
		if named, ok := Named(f.String()); f != Neutral && (named != f || !ok) {
			t.Errorf("%s is not known by its name", f)
		}
	}
}

// drawn draws a random stimulus.
func drawn(t *rapid.T) Stimulus {
	weight, sentiment := rapid.Float64Range(0, 1), rapid.Float64Range(-1, 1).Draw(t, "sentiment")
	return rapid.SampledFrom([]Stimulus{{},
		raise(Feeling(rapid.IntRange(0, feelings-1).Draw(t, "feeling")), weight.Draw(t, "weight")),
		Spoken(Sentiment{sentiment, weight.Draw(t, "arousal"), weight.Draw(t, "uncertain")}, rapid.Float64Range(0, 20).Draw(t, "talk")),
		Started(), Done(nil), Done(&sentiment), Failed(), Interrupted(), FaceSeen(nil), Addressed(), loadStarted(), validated(3, 0),
		loadEnded(false), validated(0, 0),
		Express(Preset(rapid.IntRange(0, int(presets)-1).Draw(t, "preset")), weight.Draw(t, "intensity")),
		{looks: true, yaw: rapid.Float64Range(-90, 90).Draw(t, "yaw")},
	}).Draw(t, "happened")
}

// lived returns the state after random stimuli.
func lived(t *rapid.T) (s State) {
	for range rapid.IntRange(0, 24).Draw(t, "steps") {
		s = Step(s, drawn(t), rapid.SampledFrom([]float64{0, 0, .1, 1, 3}).Draw(t, "dt"))
	}
	return s
}

func TestEverythingStaysInItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := lived(t)
		w := s.shownMorphs()
		for _, x := range slices.Concat(s.feelings[:], w[:]) {
			if !(x >= 0 && x <= 1) {
				t.Fatalf("out of bounds: %+v", s)
			}
		}
		if h := s.Head(); !(math.Abs(h.Tilt) <= 25 && math.Abs(h.Lean) <= 25 && math.Abs(h.Yaw) <= 45) {
			t.Fatalf("a head at %+v", h)
		}
	})
}

// TestMoodSettlesWithoutEvents tests that any state is neutral and still after a minute without
// events.
func TestMoodSettlesWithoutEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := run(Step(lived(t), Stimulus{looks: true}, 0), 60)
		if want := (State{}).Mood(); !s.Still() || s.Mood() != want {
			t.Fatalf("after a minute: %+v", s)
		}
	})
}

// TestStepWithoutTimeChangesNothing tests that steps of zero, negative or undefined duration
// change nothing.
func TestStepWithoutTimeChangesNothing(t *testing.T) {
	s := felt(raise(Concern, .5))
	for _, dt := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		if got := pass(s, dt); got != s {
			t.Errorf("%v seconds made %+v of %+v", dt, got, s)
		}
	}
}

func TestAStepAllocatesNothing(t *testing.T) {
	s, happened := felt(raise(Concern, 1)), Express(Happy, 1).and(Celebration, .1)
	if n := testing.AllocsPerRun(100, func() { s = Step(s, happened, .01) }); n > 0 {
		t.Errorf("a step makes %v allocations", n)
	}
}
