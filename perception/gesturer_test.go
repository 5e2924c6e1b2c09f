package perception

import (
	"testing"
	"time"

	"perch/device"
	"perch/event"
)

func TestGesturesAreCarriedOut(t *testing.T) {
	act(t, []string{"gesture"}, []scene{
		{name: "a nod is four turns, and the head is back", script: "1s gesture nod; 9s .",
			want: "1s head 0 30; 1.3s head 0 8; 1.6s head 0 28; 1.9s head 0 8; 2.2s head 0 15"},
		{name: "lights and face are as before", script: "1s gesture concern; 9s .",
			want: "1s head 8 10; 1s face sad; 1s lights 70 20 0; 2s head -6 8; 2s lights 30 8 0; 3s head 0 15; 3s lights 0 0 0; 3s face neutral"},
		{name: "from where the head is", script: `0s head_turn {"yaw":30,"pitch":40,"by":"rule"}; 1s gesture shrug; 9s .`,
			want: "1s head 40 40; 1s face confused; 1.6s head 20 36; 2s head 30 15; 2.4s head 30 40; 2.4s face neutral"},
		{name: "a face is the answer's while one is spoken", script: "0s speaks; 1s gesture bow; 9s .",
			want: "1s head 0 30; 1.4s head 0 5; 2.8s head 0 15"},
		{name: "words break it off", script: "1s gesture concern; 1.5s heard Hello; 9s .",
			want: "1s head 8 10; 1s face sad; 1s lights 70 20 0; 1.5s head 0 15; 1.5s lights 0 0 0"},
		{name: "an interruption breaks it off", script: "0s speaks; 1s gesture nod; 1.1s cut; 9s .", want: "1s head 0 30; 1.1s head 0 15"},
		{name: "a touch breaks it off", script: "1s gesture nod; 1.1s pet; 9s .", want: "1s head 0 30; 1.1s head 0 15"},
		{name: "a new talk breaks it off", script: "1s gesture nod; 1.1s online; 9s .", want: "1s head 0 30; 1.1s head 0 15"},
		{name: "a head that the model has turned is its own", script: "1s moves; 2s gesture concern; 9s .",
			want: "2s face sad; 2s lights 70 20 0; 3s lights 30 8 0; 4s lights 0 0 0; 4s face neutral"},
		{name: "an unknown one is nothing", script: "1s gesture somersault; 9s .", want: ""},
		{name: "a robot that is away makes none", script: "0s offline; 1s gesture nod; 9s .", want: ""},
		{name: "one that is asleep makes none", script: "0s goodnight; 1s gesture nod; 9s .", want: ""},
		{name: "but its owner's", script: "0s goodnight; 1s pressed bow; 1.1s pet; 9s .", want: "1s head 0 30; 1.1s head 0 15"},
		{name: "what is felt waits for nobody, and gives way", script: "1s gesture nod; 1.8s felt bow; 9s .",
			want: "1s head 0 30; 1.3s head 0 8; 1.6s head 0 28; 1.9s head 0 8; 2.2s head 0 15"},
		{name: "quiet hours have what is asked for", begin: "23:00", tune: nightly, script: "1s gesture nod; 1.1s pet; 9s .",
			want: "1s head 0 30; 1.1s head 0 15"},
		{name: "and not what is felt", begin: "23:00", tune: nightly, script: "1s felt nod; 9s .", want: ""},
	})
}

func TestALookTurnsTheHead(t *testing.T) {
	act(t, []string{"look_at"}, []scene{
		{name: "at who is there", script: "1s look user", want: "1s head 0 30"},
		{name: "at who was heard", script: "1s sound left; 2s look user", want: "2s head -35 30"},
		{name: "ahead", script: "1s look center; 2s look model; 3s look down", want: "1s head 0 15; 2s head 0 15; 3s head 0 5"},
		{name: "at what only a drawn avatar can see", script: "1s look token", want: ""},
		{name: "not at a face that it sees, which is before it", script: "1s gazes user", want: ""},
		{name: "not away from where the model has turned it", script: "1s moves; 2s look center", want: ""},
	})
}

// TestGesturesStayWithinLimits checks, for several durations, that gestures keep the head within the range of its
// servos, and that no keyframe follows another sooner than a robot can execute it.
func TestGesturesStayWithinLimits(t *testing.T) {
	for _, one := range StockGestures() {
		for _, lasts := range []int64{-1, 0, 1, 500, 5000, 1 << 62} {
			c := newReactor(Options{Tuning: DefaultTuning(), Zone: time.UTC, Gestures: StockGestures()})
			now := noon
			c.handleEvent(envelope(now, event.RobotOnline{}))
			c.handleEvent(envelope(now, event.Perceived{Name: headTurn, Data: []byte(`{"yaw":120,"pitch":80,"by":"rule"}`)}))
			requests := c.handleEvent(envelope(now, event.Gesture{Name: one.Name, Duration: lasts, By: event.ByModel}))
			var last time.Time
			for {
				for _, d := range requests {
					turn, is := d.act.(TurnHead)
					if !is {
						continue
					}
					if turn.Yaw < -maxYaw || turn.Yaw > maxYaw || *turn.Pitch < device.MinHeadPitch || *turn.Pitch > device.MaxHeadPitch ||
						turn.Speed < minSpeed || turn.Speed > maxSpeed {
						t.Errorf("%s turns the head by %+v", one.Name, turn)
					}
					if now.Sub(last) < minKeyframeGap-time.Millisecond {
						t.Errorf("%s in %d ms has two turns within %s", one.Name, lasts, now.Sub(last))
					}
					last = now
				}
				ends := c.gestureEnds()
				if ends.IsZero() {
					break
				}
				if ends.Sub(noon) > maxGestureDuration {
					t.Fatalf("%s ends after %s", one.Name, ends.Sub(noon))
				}
				now = now.Add(time.Millisecond)
				requests = c.step(now, nil)
			}
		}
	}
}

// TestTenThousandGesturesASecond checks that only two of the gestures are started, and that the robot is restored.
func TestTenThousandGesturesASecond(t *testing.T) {
	c := newReactor(Options{Tuning: DefaultTuning(), Zone: time.UTC, Gestures: StockGestures()})
	c.handleEvent(envelope(noon, event.RobotOnline{}))
	names := StockGestures().Names()
	acts := 0
	for i := range 10_000 {
		now := noon.Add(time.Duration(i) * 100 * time.Microsecond)
		acts += len(c.handleEvent(envelope(now, event.Gesture{Name: names[i%len(names)], By: event.ByModel})))
	}
	if acts > 2*10 {
		t.Errorf("they brought about %d acts", acts)
	}
	for !c.gestureEnds().IsZero() {
		c.step(c.gestureEnds(), nil)
	}
	if h := c.head; h.priority != PriorityGesture {
		t.Errorf("the head is %+v", h)
	}
}
