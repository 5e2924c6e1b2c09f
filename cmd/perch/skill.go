package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perch/agent/manifest"
	"perch/agent/skill"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/engines"
	"perch/cmd/perch/skills"
	"perch/plain"
)

// skillFlags holds the flags of the commands about skills. These commands need no running appliance.
type skillFlags struct {
	settings
	output
}

func (f *skillFlags) register(c *cobra.Command) *cobra.Command {
	return f.settings.register(f.output.register(c))
}

// read returns the configuration, the folder of its skills, and which skills are trusted.
func (f *skillFlags) read() (loaded config.Config, folder string, trust skill.Trust, err error) {
	if loaded, err = f.load(); err != nil {
		return loaded, "", skill.Trust{}, err
	}
	data := config.Data(f.data)
	trust, err = skills.Trust(&loaded, data)
	return loaded, skills.Folder(&loaded, data), trust, err
}

// skillLine is a skill as the commands print it.
type skillLine struct {
	Name    string   `json:"name,omitempty"`
	Version string   `json:"version,omitempty"`
	Folder  string   `json:"folder,omitempty"` // empty for a built-in skill
	Digest  string   `json:"digest,omitempty"`
	Signed  string   `json:"signed_by,omitempty"` // the public key that signature.json names
	Loaded  bool     `json:"loaded"`
	Why     string   `json:"why,omitempty"`     // why the skill is not loaded
	Unheard []string `json:"unheard,omitempty"` // why some sentences of the skill are not understood
}

// unheardSentences returns why some sentences of skills are not understood. The keys of the map are names of
// skills.
func unheardSentences(c *config.Config, skills []skill.Skill) (map[string][]string, error) {
	book, err := config.Book(c)
	if err != nil {
		return nil, err
	}
	reasons := map[string][]string{}
	for _, s := range skills {
		if err := engines.AddSkill(book, s); err != nil {
			reasons[s.Name] = strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
		}
	}
	return reasons, nil
}

func skillListCommand() *cobra.Command {
	f := &skillFlags{}
	return f.register(&cobra.Command{
		Use:     "list",
		Short:   "List the skills that the appliance loads at its start, and those that it refuses",
		Example: "perch skill list",
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, folder, trust, err := f.read()
			if err != nil {
				return err
			}
			library, err := skill.New(skill.Options{Folder: folder, Trust: trust})
			if err != nil {
				return err
			}
			defer library.Close()
			unheard, err := unheardSentences(&loaded, library.All())
			if err != nil {
				return err
			}
			var lines []skillLine
			for _, s := range library.All() {
				line := newSkillLine(s, nil)
				line.Unheard = unheard[s.Name]
				lines = append(lines, line)
			}
			for _, r := range library.Refused() {
				lines = append(lines, skillLine{Name: r.Name, Folder: r.Folder, Why: r.Err.Error()})
			}
			return f.print(c, lines, func(out io.Writer) {
				for _, line := range lines {
					line.write(out)
				}
			})
		},
	})
}

// newSkillLine returns the line of a skill. problem is the reason why the skill is not loaded, or nil.
func newSkillLine(s skill.Skill, problem error) skillLine {
	line := skillLine{Name: s.Name, Version: s.Version, Folder: s.Folder, Digest: s.Digest, Loaded: problem == nil}
	if s.Signature != nil {
		line.Signed = s.Signature.Key
	}
	if problem != nil {
		line.Why = problem.Error()
	}
	return line
}

// write prints the skill on a line, followed by the reasons in Unheard.
func (l skillLine) write(out io.Writer) {
	origin := "built in"
	switch {
	case l.Why != "":
		origin = l.Folder + " is not loaded: " + l.Why
	case l.Folder != "":
		origin = l.Folder
	}
	fmt.Fprintln(out, plain.Text(strings.TrimSpace(l.Name+" "+l.Version)+"  "+origin))
	for _, text := range l.Unheard {
		fmt.Fprintln(out, plain.Text("  "+text))
	}
}

func skillCheckCommand() *cobra.Command {
	f := &skillFlags{}
	return f.register(&cobra.Command{
		Use:     "check DIR",
		Short:   "Check the folder of a skill, and print its digest and whether it is trusted",
		Example: "perch skill check ./tide",
		RunE: func(c *cobra.Command, args []string) error {
			loaded, _, trust, err := f.read()
			if err != nil {
				return err
			}
			s, err := skill.Read(args[0])
			if err != nil {
				return err
			}
			problem := trust.Check(s)
			unheard, err := unheardSentences(&loaded, []skill.Skill{s})
			if err != nil {
				return err
			}
			line := newSkillLine(s, problem)
			line.Unheard = unheard[s.Name]
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

func skillSignCommand() *cobra.Command {
	f := &skillFlags{}
	return f.register(&cobra.Command{
		Use:     "sign DIR",
		Short:   "Sign the folder of a skill as the owner of this appliance, which then trusts it unless skills.trust is whitelist",
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
			return f.print(c, newSkillLine(s, nil), func(out io.Writer) {
				fmt.Fprintf(out, "%s is signed by %s; unless skills.trust is whitelist, perch loads it when it starts again\n", s.Name, signature.Key)
			})
		},
	})
}

func skillGetCommand() *cobra.Command {
	f := &skillFlags{}
	return f.register(&cobra.Command{
		Use:     "get ADDRESS DIGEST",
		Short:   "Download the skill in the folder at an https address, if it has this digest",
		Example: "sudo -u perch perch skill get https://example.com/skills/tide/ sha256:DIGEST",
		RunE: func(c *cobra.Command, args []string) error {
			_, folder, trust, err := f.read()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
			defer cancel()
			open, err := manifest.OpenAt(ctx, http.DefaultClient, strings.TrimSuffix(args[0], "/")+"/")
			if err != nil {
				return err
			}
			s, err := skill.Fetch(open, args[1], folder)
			if err != nil {
				return err
			}
			line := newSkillLine(s, trust.Check(s))
			return f.print(c, line, func(out io.Writer) { line.write(out) })
		},
	})
}
