package robot

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
)

// TestTyped: what a keyboard sent is a turn, what has woken a robot is none.
func TestTyped(t *testing.T) {
	listened := func(k *talk) { k.listen(xiaozhi.Auto) }
	streaming := func(k *talk) { k.listen(xiaozhi.Auto); k.quiet(3 * time.Second) }
	preRoll := func(k *talk) {
		k.listen(xiaozhi.Auto)
		k.say(xiaozhi.ListenStop{})
		for i := range 33 {
			k.put(frame{audio: xiaozhi.Audio{Opus: k.packets[i%len(k.packets)]}})
		}
	}
	for name, c := range map[string]struct {
		before func(*talk)
		detect xiaozhi.ListenDetect
		want   []string // the mind was given
	}{
		"marked, at once":           {func(*talk) {}, xiaozhi.ListenDetect{Text: "hello", Typed: true}, []string{"hello"}},
		"a wake word":               {func(*talk) {}, xiaozhi.ListenDetect{Text: "hello"}, nil},
		"after listening":           {listened, xiaozhi.ListenDetect{Text: "hello"}, []string{"hello"}},
		"while a microphone runs":   {streaming, xiaozhi.ListenDetect{Text: "hello"}, []string{"hello"}},
		"a wake word and its sound": {preRoll, xiaozhi.ListenDetect{Text: "hello"}, nil},
		"marked all the same":       {preRoll, xiaozhi.ListenDetect{Text: "hello", Typed: true}, []string{"hello"}},
		"a face":                    {listened, xiaozhi.ListenDetect{Text: "face"}, nil},
		"nothing":                   {listened, xiaozhi.ListenDetect{Typed: true}, nil},
		"lines":                     {listened, xiaozhi.ListenDetect{Text: "a\r\n\x1bb", Typed: true}, []string{"a   b"}},
		"a book":                    {listened, xiaozhi.ListenDetect{Text: strings.Repeat("é", 20000), Typed: true}, []string{strings.Repeat("é", 1000)}},
	} {
		t.Run(name, func(t *testing.T) {
			var given []string
			mind := &scriptedMind{answer: func(_ context.Context, turn agent.Turn, out func(agent.Reply) error) error {
				given = append(given, turn.Text)
				return out(agent.Done{End: agent.Continue})
			}}
			talking(t, mind, func(k *talk) {
				c.before(k)
				k.happened()
				k.say(c.detect)
				k.pass(time.Second)
				if !slices.Equal(given, c.want) {
					t.Errorf("the mind was given %q, want %q", given, c.want)
				}
				if woken := slices.Contains(k.happened(), "perceived"); woken != (c.want == nil && c.detect.Text != "") {
					t.Errorf("perceived: %v", woken)
				}
			})
		})
	}
}
