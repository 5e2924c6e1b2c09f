package reflex

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"perch/agent"
)

// check returns all faults in the files of sentences.
func (b *Book) check() error {
	var faults []error
	for _, in := range b.intents {
		fault := func(why error) {
			faults = append(faults, fmt.Errorf("%s: intent %q: %w", in.source, in.name, why))
		}
		if len(in.sentences) == 0 {
			fault(errors.New("it has no sentences"))
		}
		if in.Answer == "" {
			fault(errors.New("it has no answer"))
		}
		if _, known := actions()[in.Action]; !known {
			fault(fmt.Errorf("there is no action %q", in.Action))
		}
		if in.Action == skillAction && in.Value == "" {
			fault(fmt.Errorf("action %q needs a value, which is the name of the skill", in.Action))
		}
		if !slices.Contains([]string{"", string(agent.HangUp), string(agent.Sleep)}, in.End) {
			fault(fmt.Errorf("end is hang_up or sleep, not %q", in.End))
		}
		b.checkSlots(in, fault)
		b.checkValue(in, fault)
		b.checkTimer(in, fault)
	}
	for _, name := range []string{unitList, unitsList} {
		for _, it := range b.lists[name].items {
			if n, err := strconv.Atoi(it.value); err != nil || n < 1 {
				faults = append(faults, fmt.Errorf("%s: list %q: %q stands for a number of seconds, not for %q", b.lists[name].source, name,
					strings.Join(it.words, " "), it.value))
			}
		}
	}
	faults = append(faults, b.checkAnswers())
	return errors.Join(faults...)
}

// checkAnswers checks that answers consist of words only, and that there are both yes
// and no answers, or none at all.
func (b *Book) checkAnswers() error {
	var faults []error
	kinds := map[string]bool{}
	for _, a := range b.answers {
		kinds[a.kind] = true
		for _, s := range a.slots {
			faults = append(faults, fmt.Errorf("%s: answer %q: it has a slot {%s}, but answers are words alone", a.source, a.kind, s.name))
		}
	}
	if len(kinds) > 0 && !(kinds["yes"] && kinds["no"]) {
		faults = append(faults, fmt.Errorf("%s: answers need both a yes and a no", b.answers[0].source))
	}
	return errors.Join(faults...)
}

var placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)

// checkSlots checks that each slot has a list, and that each placeholder of an
// answer is filled by every sentence of the intent.
func (b *Book) checkSlots(in intent, fault func(error)) {
	common := map[string]int{}
	for _, s := range in.sentences {
		seen := map[string]bool{}
		for _, of := range s.slots {
			if !seen[of.name] {
				common[of.name]++
				seen[of.name] = true
			}
			if _, known := b.lists[of.list]; !known {
				fault(fmt.Errorf("%s: there is no list %q", s.source, of.list))
			}
		}
	}
	for _, text := range []string{in.Answer, in.Missing, in.Key, in.Body} {
		for _, p := range placeholder.FindAllStringSubmatch(text, -1) {
			filled := slices.Contains([]string{"time", "clock", "date", "name", "body", "left", "due"}, p[1])
			if !filled && common[p[1]] < len(in.sentences) {
				fault(fmt.Errorf("{%s} is not in every one of its sentences", p[1]))
			}
		}
	}
}

// checkValue checks that actions have the numbers that they need.
func (b *Book) checkValue(in intent, fault func(error)) {
	need := map[string]int{"look": 2, "lights": 3}[in.Action]
	if need == 0 || in.Value == "" {
		return
	}
	if n, err := numbers(in.Value); err != nil || len(n) != need {
		fault(fmt.Errorf("action %q needs a value of %d numbers, not %q", in.Action, need, in.Value))
	}
}

// checkTimer checks that a timer has a length, or the time of its end, and a text.
func (b *Book) checkTimer(in intent, fault func(error)) {
	if in.Action != "timer" && in.Action != "reminder" {
		return
	}
	for _, s := range in.sentences {
		has := func(name string) bool {
			return slices.ContainsFunc(s.slots, func(of slot) bool { return of.name == name })
		}
		if (!has(b.numbers) || !has(unitsList)) && !has(hourSlot) {
			fault(fmt.Errorf("%s: action %q needs the slots {%s} and {%s}, or {%s:%s}",
				s.source, in.Action, b.numbers, unitsList, hourSlot, b.numbers))
		}
	}
	if in.Body == "" {
		fault(fmt.Errorf("action %q needs a body, which is what is said when the time has come", in.Action))
	}
}

func numbers(text string) ([]int, error) {
	var all []int
	for f := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", f)
		}
		all = append(all, n)
	}
	return all, nil
}
