package skill

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Refusal is a skill that is not loaded, and why.
type Refusal struct {
	Folder string
	Name   string // empty if the bundle could not be read
	Err    error
}

// order sorts skills so that each comes after its dependencies, and otherwise by name.
// A skill is refused if it exists twice or is built in, if a dependency is missing or
// refused, if it is part of a cycle, or if an earlier one has a tool of the same name.
func order(all []Skill, builtin map[string]Skill) (sorted []Skill, refused []Refusal) {
	o := ordering{byName: map[string]Skill{}, state: map[string]error{}, builtin: builtin, tools: map[string]string{performTool: "Perch"}}
	for _, s := range all {
		switch other, twice := o.byName[s.Name]; {
		case builtin[s.Name].Name != "", elsewhere(s.Name) != nil:
			o.refuse(s, fmt.Errorf("%s is the name of a skill that Perch has or leaves to a viewer; give it another", s.Name))
		case twice:
			o.refuse(s, fmt.Errorf("the folder %s has a skill of the same name", other.Folder))
		default:
			o.byName[s.Name] = s
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.byName)) {
		_ = o.place(name, nil) // a failure is recorded in refused
	}
	return o.sorted, o.refused
}

type ordering struct {
	builtin map[string]Skill
	byName  map[string]Skill
	state   map[string]error  // of visited skills; nil if placed
	tools   map[string]string // the tools' owners, by tool name
	sorted  []Skill
	refused []Refusal
}

func (o *ordering) refuse(s Skill, err error) error {
	o.refused = append(o.refused, Refusal{s.Folder, s.Name, err})
	return err
}

// place puts a skill after its dependencies. way is the path of skills that depend on it.
func (o *ordering) place(name string, way []string) error {
	if err, seen := o.state[name]; seen {
		return err
	}
	s := o.byName[name]
	if i := slices.Index(way, name); i >= 0 {
		return fmt.Errorf("these skills need one another in a circle: %s; remove one of these dependencies",
			strings.Join(append(way[i:], name), ", "))
	}
	err := o.placeNeeds(s, append(slices.Clip(way), name))
	if err == nil {
		err = o.claimTools(s)
	}
	if o.state[name] = err; err != nil {
		return o.refuse(s, err)
	}
	o.sorted = append(o.sorted, s)
	return nil
}

func (o *ordering) placeNeeds(s Skill, way []string) error {
	for _, name := range slices.Sorted(maps.Keys(s.Needs)) {
		other, there := o.byName[name]
		if own, has := o.builtin[name]; has {
			other, there = own, true
		}
		if !there {
			return fmt.Errorf("it needs the skill %s, which is not there or not trusted; put it beside this one, and sign it", name)
		}
		fits, err := parseRange(s.Needs[name])
		if err != nil {
			return err
		}
		if v, err := parseVersion(other.Version); err != nil || !fits(v) {
			return fmt.Errorf("it needs %s %s, and %s is there", name, s.Needs[name], other.Version)
		}
		if other.builtin != nil {
			continue
		}
		if err := o.place(name, way); err != nil {
			return fmt.Errorf("it needs the skill %s: %w", name, err)
		}
	}
	return nil
}

// claimTools reserves the names of a skill's tools.
func (o *ordering) claimTools(s Skill) error {
	for _, t := range s.Tools {
		if whose, taken := o.tools[t.Name]; taken {
			return fmt.Errorf("its tool %s has the name of a tool of %s; rename one of them", t.Name, whose)
		}
	}
	for _, t := range s.Tools {
		o.tools[t.Name] = s.Name
	}
	return nil
}
