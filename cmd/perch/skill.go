package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"perch/agent/skill"
	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
	"perch/device"
)

// skillFlags are those of the commands about skills, which need no running appliance.
type skillFlags struct {
	settings
	output
}

func (f *skillFlags) register(c *cobra.Command) *cobra.Command {
	return f.settings.register(f.output.register(c))
}

// shownSkill is a skill as commands show it.
type shownSkill struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Folder  string `json:"folder,omitempty"` // left out if it is built in
	Digest  string `json:"digest,omitempty"`
	Signed  string `json:"signed_by,omitempty"` // the public key
	Loaded  bool   `json:"loaded"`
	Why     string `json:"why,omitempty"` // it is not loaded
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
			trust, err := appliance.SkillTrust(&loaded, data)
			if err != nil {
				return err
			}
			library, err := skill.New(skill.Options{Folder: appliance.SkillFolder(&loaded, data), Trust: trust, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			defer library.Close()
			var all []shownSkill
			for _, s := range library.All() {
				all = append(all, shown(s, nil))
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

func shown(s skill.Skill, why error) shownSkill {
	shown := shownSkill{Name: s.Name, Version: s.Version, Folder: s.Folder, Digest: s.Digest, Loaded: why == nil}
	if s.Signature != nil {
		shown.Signed = s.Signature.Key
	}
	if why != nil {
		shown.Why = why.Error()
	}
	return shown
}

func writeSkill(out io.Writer, s shownSkill) {
	what := "built in"
	switch {
	case s.Why != "":
		what = s.Folder + " is not loaded: " + s.Why
	case s.Folder != "":
		what = s.Folder
	}
	fmt.Fprintln(out, device.Plain(strings.TrimSpace(s.Name+" "+s.Version)+"  "+what))
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
			trust, err := appliance.SkillTrust(&loaded, config.Data(f.data))
			if err != nil {
				return err
			}
			s, err := skill.Read(args[0])
			if err != nil {
				return err
			}
			why := trust.Check(s)
			return f.print(c, shown(s, why), func(out io.Writer) {
				trusted := "yes"
				if why != nil {
					trusted = "no: " + why.Error()
				}
				signed := ""
				if s.Signature != nil {
					signed = s.Signature.Key
				}
				writeLines(out, [][2]string{{"name", s.Name}, {"version", s.Version}, {"does", s.Description}, {"digest", s.Digest},
					{"signed by", signed}, {"trusted", trusted}})
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
			key, err := appliance.SigningKey(config.Data(f.data), slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			signature, err := skill.Sign(s, key)
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
