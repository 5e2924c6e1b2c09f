package skill

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Refusal is a bundle that was not loaded.
type Refusal struct {
	Folder string
	Name   string // name of the skill; empty if the bundle could not be read
	Err    error  // the reason
}

// order sorts skills by name, but after their dependencies. It refuses a skill in these cases:
//   - A dependency is missing, refused or has a version outside the range.
//   - The skill is in a cycle of dependencies.
//   - A tool has the name performTool or the name of another skill's tool.
//   - An earlier element of skills, a built-in skill or a skill that only viewers implement, such as
//     present-model, has the same name.
func order(skills []Skill, builtin map[string]Skill) (sorted []Skill, refused []Refusal) {
	o := ordering{byName: map[string]Skill{}, visited: map[string]error{}, builtin: builtin, tools: map[string]string{performTool: "Perch"}}
	for _, s := range skills {
		switch other, isDuplicate := o.byName[s.Name]; {
		case builtin[s.Name].Name != "", checkElsewhere(s.Name) != nil:
			o.refuse(s, fmt.Errorf("%s is the name of a skill that Perch has or leaves to a viewer; give it another", s.Name))
		case isDuplicate:
			o.refuse(s, fmt.Errorf("the folder %s has a skill of the same name", other.Folder))
		default:
			o.byName[s.Name] = s
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.byName)) {
		_ = o.place(name, nil) // place adds an error to o.refused
	}
	return o.sorted, o.refused
}

// ordering is the state of order.
type ordering struct {
	builtin map[string]Skill  // the built-in skills by name
	byName  map[string]Skill  // the skills to sort, by name
	visited map[string]error  // result of place for each visited skill, by name
	tools   map[string]string // name of the skill that has each tool; key: name of the tool
	sorted  []Skill
	refused []Refusal
}

// refuse adds a refusal and returns err.
func (o *ordering) refuse(s Skill, err error) error {
	o.refused = append(o.refused, Refusal{s.Folder, s.Name, err})
	return err
}

// place appends a skill to o.sorted, after its dependencies, or refuses it and returns the
// reason. path lists the skills that are being placed; each depends on the next.
func (o *ordering) place(name string, path []string) error {
	if err, ok := o.visited[name]; ok {
		return err
	}
	s := o.byName[name]
	if i := slices.Index(path, name); i >= 0 {
		return fmt.Errorf("these skills depend on one another in a circle: %s; remove one of the dependencies",
			strings.Join(append(path[i:], name), ", "))
	}
	err := o.placeDependencies(s, append(slices.Clip(path), name))
	if err == nil {
		err = o.claimTools(s)
	}
	if o.visited[name] = err; err != nil {
		return o.refuse(s, err)
	}
	o.sorted = append(o.sorted, s)
	return nil
}

// placeDependencies places the dependencies of a skill and checks their versions.
func (o *ordering) placeDependencies(s Skill, path []string) error {
	for _, name := range slices.Sorted(maps.Keys(s.Needs)) {
		other, ok := o.byName[name]
		if own, isBuiltin := o.builtin[name]; isBuiltin {
			other, ok = own, true
		}
		if !ok {
			return fmt.Errorf("it needs the skill %s, which is missing or not trusted; put it beside this one, and sign it", name)
		}
		if !other.hasVersion(s.Needs[name]) {
			return fmt.Errorf("it needs %s %s, but the installed version is %s", name, s.Needs[name], other.Version)
		}
		if other.builtin != nil {
			continue
		}
		if err := o.place(name, path); err != nil {
			return fmt.Errorf("it needs the skill %s: %w", name, err)
		}
	}
	return nil
}

// claimTools registers the tools of a skill. It returns an error if another skill has a tool
// with the same name.
func (o *ordering) claimTools(s Skill) error {
	for _, t := range s.Tools {
		if owner, taken := o.tools[t.Name]; taken {
			return fmt.Errorf("its tool %s has the same name as a tool of %s; rename one of them", t.Name, owner)
		}
	}
	for _, t := range s.Tools {
		o.tools[t.Name] = s.Name
	}
	return nil
}
