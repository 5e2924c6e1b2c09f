package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"perch/agent/skill"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/engines"
	"perch/cmd/perch/skills"
	"perch/event"
	"perch/plain"
)

// skillFlags holds the flags of the commands about skills, which need no running appliance.
type skillFlags struct {
	settings
	output
}

func (f *skillFlags) register(c *cobra.Command) *cobra.Command {
	return f.settings.register(f.output.register(c))
}

// shownSkill is a skill as commands print it.
type shownSkill struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Folder  string `json:"folder,omitempty"` // left out if it is built in
	Digest  string `json:"digest,omitempty"`
	Signed  string `json:"signed_by,omitempty"` // the public key
	Loaded  bool   `json:"loaded"`
	Why     string `json:"why,omitempty"` // why it is not loaded
	// Unheard says which of its sentences are not listened for, and why.
	Unheard []string `json:"unheard,omitempty"`
}

// unheard returns why sentences of skills are not listened for, by the skill's name.
func unheard(c *config.Config, skills []skill.Skill) (map[string][]string, error) {
	book, err := config.Book(c)
	if err != nil {
		return nil, err
	}
	all := map[string][]string{}
	for _, s := range skills {
		if err := engines.AddSkill(book, s); err != nil {
			all[s.Name] = strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
		}
	}
	return all, nil
}

func skillsCommand() *cobra.Command {
	f := &skillFlags{}
	return f.register(&cobra.Command{
		Use:     "list",
		Short:   "List the skills that a start of the appliance loads, and those that it refuses",
		Example: "perch skill list",
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := f.load()
			if err != nil {
				return err
			}
			data := config.Data(f.data)
			trust, err := skills.Trust(&loaded, data)
			if err != nil {
				return err
			}
			library, err := skill.New(skill.Options{Folder: skills.Folder(&loaded, data), Trust: trust,
				Remember: func(skill.Call, string, string) error { return nil },             // nothing is performed here,
				Sign:     func(string) (event.Signed, error) { return event.Signed{}, nil }, // but an appliance has these two
				Log:      slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			defer library.Close()
			silent, err := unheard(&loaded, library.All())
			if err != nil {
				return err
			}
			var all []shownSkill
			for _, s := range library.All() {
				line := shown(s, nil)
				line.Unheard = silent[s.Name]
				all = append(all, line)
			}
			for _, r := range library.Refused() {
				all = append(all, shownSkill{Name: r.Name, Folder: r.Folder, Why: r.Err.Error()})
			}
			return f.print(c, all, func(out io.Writer) {
				for _, s := range all {
					writeSkill(out, s)
				}
			})
		},
	})
}

func shown(s skill.Skill, problem error) shownSkill {
	shown := shownSkill{Name: s.Name, Version: s.Version, Folder: s.Folder, Digest: s.Digest, Loaded: problem == nil}
	if s.Signature != nil {
		shown.Signed = s.Signature.Key
	}
	if problem != nil {
		shown.Why = problem.Error()
	}
	return shown
}

func writeSkill(out io.Writer, s shownSkill) {
	origin := "built in"
	switch {
	case s.Why != "":
		origin = s.Folder + " is not loaded: " + s.Why
	case s.Folder != "":
		origin = s.Folder
	}
	fmt.Fprintln(out, plain.Text(strings.TrimSpace(s.Name+" "+s.Version)+"  "+origin))
	for _, text := range s.Unheard {
		fmt.Fprintln(out, plain.Text("  "+text))
	}
}

func checkSkillCommand() *cobra.Command {
	f := &skillFlags{}
	return f.register(&cobra.Command{
		Use:     "check DIR",
		Short:   "Check the folder of a skill, and print its digest and whether it is trusted",
		Example: "perch skill check ./tide",
		RunE: func(c *cobra.Command, args []string) error {
			loaded, err := f.load()
			if err != nil {
				return err
			}
			trust, err := skills.Trust(&loaded, config.Data(f.data))
			if err != nil {
				return err
			}
			s, err := skill.Read(args[0])
			if err != nil {
				return err
			}
			problem := trust.Check(s)
			unheardOf, err := unheard(&loaded, []skill.Skill{s})
			if err != nil {
				return err
			}
			line := shown(s, problem)
			line.Unheard = unheardOf[s.Name]
			return f.print(c, line, func(out io.Writer) {
				trusted := "yes"
				if problem != nil {
					trusted = "no: " + problem.Error()
				}
				writeLines(out, [][2]string{{"name", s.Name}, {"version", s.Version}, {"does", s.Description}, {"digest", s.Digest},
					{"signed by", line.Signed}, {"trusted", trusted}})
				for _, text := range line.Unheard {
					writeLines(out, [][2]string{{"note", text}})
				}
			})
		},
	})
}

func signSkillCommand() *cobra.Command {
	f := &skillFlags{}
	return f.register(&cobra.Command{
		Use:     "sign DIR",
		Short:   "Sign the folder of a skill as the owner of this appliance, so that it is trusted here",
		Example: "sudo -u perch perch skill sign /var/lib/perch/skills/tide",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := skill.Read(args[0])
			if err != nil {
				return err
			}
			key, err := datadir.ReadKey(config.Data(f.data))
			if err != nil {
				return err
			}
			signature, err := skill.Sign(s, key.Private())
			if err != nil {
				return err
			}
			s.Signature = &signature
			return f.print(c, shown(s, nil), func(out io.Writer) {
				fmt.Fprintf(out, "%s is signed by %s; perch loads it when it starts again\n", s.Name, signature.Key)
			})
		},
	})
}
