package bridge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
)

// TestRanking tests the order of the results: documents that match more words or rarer words come first, memories come
// before turns, and of equal documents the newer comes first.
func TestRanking(t *testing.T) {
	h := newHarness(t, func(o *Options) {
		o.Spoken = func() []Turn {
			return []Turn{{At: noon, User: "what colour is the sky", Assistant: "The sky is blue."},
				{At: noon, User: "the the the", Assistant: "the"}}
		}
	})
	for n, e := range []agent.Entry{
		{Name: "Anna", Body: "Anna's favourite colour is blue"}, {Body: "the pot is blue"}, {Body: "the car is blue"},
		{Body: "Tom plays the violin", Tags: []string{"music"}}, {Body: "妈妈喜欢喝绿茶"}, {Body: "he likes colours of all kinds"},
		{Body: "gone", Expires: noon.Add(24 * time.Hour)},
	} {
		if _, err := h.memory.Remember(e, noon.Add(time.Duration(n)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	h.api.o.Log.add(Turn{At: noon, User: "I sold the violin", Assistant: "Oh no."})
	for query, want := range map[string][]string{
		"Anna's favourite colour": {"Anna's", `Heard "what colour`},
		"the sky":                 {`Heard "what colour is the sky", answered "The sky is blue." (2026-07-27)`},
		"VIOLIN?":                 {"Tom plays", `Heard "I sold the violin"`},
		"music":                   {"Tom plays"},
		"blue":                    {"the car", "the pot", "Anna's", "Heard"},
		"妈妈喜欢喝什么":                 {"妈妈喜欢喝绿茶"},
		"gone":                    nil, "": nil, "?!": nil, "vio": nil, "colou": {"he likes", "Anna's", "Heard"},
	} {
		got := strings.Split(h.api.lookUp(query), "\n")
		if want == nil {
			want = []string{"Nothing is remembered about that."}
		}
		for i, w := range want {
			if i >= len(got) || !strings.HasPrefix(strings.TrimPrefix(got[i], "- "), w) {
				t.Errorf("%q finds\n%s\nwant number %d to begin with %q", query, strings.Join(got, "\n"), i+1, w)
			}
		}
	}
}

// TestFewAreReturned tests that only the best of many matches are returned.
func TestFewAreReturned(t *testing.T) {
	h := newHarness(t)
	for n := range 100 {
		if _, err := h.memory.Remember(agent.Entry{Body: fmt.Sprintf("cake number %d", n)}, noon.Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	got := strings.Split(h.api.lookUp("the cake"), "\n")
	if len(got) != maxFound || got[0] != "- cake number 99 (2026-07-27)" {
		t.Errorf("%q", got)
	}
}

// TestRareWordsCountMore tests that a document with a rare word comes before newer documents with a common word.
func TestRareWordsCountMore(t *testing.T) {
	h := newHarness(t)
	for n, text := range []string{"a zebra", "green tea", "black tea", "cold tea"} {
		if _, err := h.memory.Remember(agent.Entry{Body: text}, noon.Add(time.Duration(n)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.api.lookUp("tea or zebra"); !strings.HasPrefix(got, "- a zebra") {
		t.Errorf("found is\n%s", got)
	}
}

func TestTerms(t *testing.T) {
	for query, want := range map[string][]string{
		"What's the COLOUR, the colour?": {"what", "the", "colour"},
		"喝绿茶":                            {"喝绿", "绿茶"},
		"茶":                              {"茶"},
		"is it?":                         {"is", "it"}, "": nil,
	} {
		if got := terms(query); !slices.Equal(got, want) {
			t.Errorf("%q has %q", query, got)
		}
	}
	if got := terms(strings.Repeat("喝绿茶妈爱", 10000)); len(got) > maxWords {
		t.Errorf("%d terms", len(got))
	}
}
