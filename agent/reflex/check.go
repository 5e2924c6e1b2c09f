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

// check returns an error that joins all faults in the book.
func (b *Book) check() error {
	var faults []error
	for _, in := range slices.Concat(b.intents, b.music) {
		fault := func(err error) {
			faults = append(faults, fmt.Errorf("%s: intent %q: %w", in.source, in.name, err))
		}
		if len(in.sentences) == 0 {
			fault(errors.New("it has no sentences"))
		}
		if in.Answer == "" {
			fault(errors.New("it has no answer"))
		}
		if _, ok := actions()[in.Action]; !ok {
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
	for _, name := range []string{singularUnitSlot, pluralUnitsSlot} {
		for _, it := range b.lists[name].items {
			if n, err := strconv.Atoi(it.value); err != nil || n < 1 {
				faults = append(faults, fmt.Errorf("%s: list %q: %q stands for a number of seconds, not for %q", b.lists[name].source, name,
					strings.Join(it.words, " "), it.value))
			}
		}
	}
	for _, it := range b.lists[daysSlot].items {
		if strings.Trim(it.value, "1234567") != "" {
			faults = append(faults, fmt.Errorf("%s: list %q: %q stands for digits from 1 for Monday to 7, not for %q", b.lists[daysSlot].source, daysSlot,
				strings.Join(it.words, " "), it.value))
		}
	}
	faults = append(faults, b.checkAnswers())
	return errors.Join(faults...)
}

// checkAnswers checks that answers have no slots, and that there are answers for both yes
// and no if there are any.
func (b *Book) checkAnswers() error {
	var faults []error
	kinds := map[string]bool{}
	for _, a := range b.answers {
		kinds[a.kind] = true
		for _, s := range a.slots {
			faults = append(faults, fmt.Errorf("%s: answer %q: it has a slot {%s}, but answers must consist of words only", a.source, a.kind, s.name))
		}
	}
	if len(kinds) > 0 && !(kinds["yes"] && kinds["no"]) {
		faults = append(faults, fmt.Errorf("%s: answers need both a yes and a no", b.answers[0].source))
	}
	return errors.Join(faults...)
}

// placeholder matches a placeholder in an answer, such as "{name}".
var placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)

// checkSlots checks that each slot has a list. It also checks the placeholders of the
// intent: each must be a placeholder that fill replaces without a slot, or the name of a slot that all
// sentences of the intent have.
func (b *Book) checkSlots(in intent, fault func(error)) {
	count := map[string]int{} // sentences with the slot; key: name of the slot
	for _, s := range in.sentences {
		seen := map[string]bool{}
		for _, sl := range s.slots {
			if !seen[sl.name] {
				count[sl.name]++
				seen[sl.name] = true
			}
			if _, ok := b.lists[sl.list]; !ok && !(isMusic(in) && sl.list == musicSlot) {
				fault(fmt.Errorf("%s: there is no list %q", s.source, sl.list))
			}
		}
	}
	for _, text := range []string{in.Answer, in.Missing, in.Key, in.Body} {
		for _, p := range placeholder.FindAllStringSubmatch(text, -1) {
			isResult := slices.Contains([]string{"time", "clock", "date", "name", "body", "left", "due", daysSlot}, p[1]) || isMusic(in) && p[1] == musicSlot
			if !isResult && count[p[1]] < len(in.sentences) {
				fault(fmt.Errorf("{%s} is not in every one of its sentences", p[1]))
			}
		}
	}
}

// checkValue checks the value of actions that need several numbers.
func (b *Book) checkValue(in intent, fault func(error)) {
	count := map[string]int{"look": 2, "lights": 3}[in.Action]
	if count == 0 || in.Value == "" {
		return
	}
	if n, err := parseNumbers(in.Value); err != nil || len(n) != count {
		fault(fmt.Errorf("action %q needs a value of %d numbers, not %q", in.Action, count, in.Value))
	}
}

// checkTimer checks that a timer, reminder or alarm has a body, and that each of its sentences
// has the slots of a number and a plural unit, or of an hour. An alarm needs an hour.
func (b *Book) checkTimer(in intent, fault func(error)) {
	switch in.Action {
	case "timer", "reminder", "alarm":
	default:
		return
	}
	for _, s := range in.sentences {
		has := func(name string) bool {
			return slices.ContainsFunc(s.slots, func(sl slot) bool { return sl.name == name })
		}
		switch {
		case has(hourSlot):
		case in.Action == "alarm":
			fault(fmt.Errorf("%s: action %q needs the slot {%s:%s}", s.source, in.Action, hourSlot, b.numbers))
		case !has(b.numbers) || !has(pluralUnitsSlot):
			fault(fmt.Errorf("%s: action %q needs the slots {%s} and {%s}, or {%s:%s}",
				s.source, in.Action, b.numbers, pluralUnitsSlot, hourSlot, b.numbers))
		}
	}
	if in.Body == "" {
		fault(fmt.Errorf("action %q needs a body, the text to be spoken when the time has come", in.Action))
	}
}

// parseNumbers parses integers separated by spaces.
func parseNumbers(text string) (numbers []int, err error) {
	for f := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", f)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
