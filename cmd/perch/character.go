package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perch/agent"
	"perch/agent/manifest"
	"perch/command"
	"perch/gateway/owner/admin"
	"perch/plain"
)

// charactersPath is the path of the characters in the admin API.
const charactersPath = "/api/v1/characters"

// characterCommand groups the commands of characters.
func characterCommand() *cobra.Command {
	c := &cobra.Command{Use: "character", Short: "Import and export characters, and give them to robots"}
	c.AddCommand(characterListCommand(), characterImportCommand(), characterExportCommand(), characterUseCommand(), characterRemoveCommand(),
		characterCardCommand(), characterCheckCommand())
	return c
}

// characterLine is a character as the commands print it.
type characterLine struct {
	admin.Character
	From string `json:"from,omitempty"` // where the character comes from, such as "import"; empty for a manifest that is only checked
}

// write prints the character, with a line for each field that is not empty.
func (l characterLine) write(out io.Writer) {
	tools := "all"
	if l.Tools != nil {
		tools = cmp.Or(strings.Join(l.Tools, ", "), "none")
	}
	writeLines(out, [][2]string{{"id", l.ID}, {"name", l.Name}, {"about", l.Description}, {"brain", l.Brain}, {"language", l.Language},
		{"voice", l.Voice}, {"tools", tools}, {"skills", strings.Join(l.Skills, ", ")}, {"robots", strings.Join(l.Robots, ", ")}})
	for _, text := range l.Remarks {
		writeLines(out, [][2]string{{"note", text}})
	}
}

func characterListCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "list",
		Short: "List the characters of this appliance, and the robots that have them",
		RunE: func(c *cobra.Command, _ []string) error {
			var list []characterLine
			return r.callAndPrint(c, http.MethodGet, charactersPath, nil, &list, func(out io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(out, "there are no characters; perch character import FILE adds one")
				}
				for _, l := range list {
					fmt.Fprintf(out, "%-16s %-20s %-13s %s\n", plain.Text(l.ID),
						plain.Text(l.Name), l.From, plain.Text(strings.Join(l.Robots, ", ")))
				}
			})
		},
	})
}

func characterImportCommand() *cobra.Command {
	r, name := &target{}, ""
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Import a character from a manifest",
		Long: "FILE is an agent manifest (agent-manifest/0.1 or 0.2), a folder or zip with a manifest.json, or an https address, which this " +
			"command fetches once.",
		Example: `perch character import leo.json
			perch character import https://example.com/leo/manifest.json --name leo`,
		RunE: func(c *cobra.Command, args []string) error {
			m, err := readManifest(c, args[0])
			if err != nil {
				return err
			}
			data, err := m.Export()
			if err != nil {
				return err
			}
			var l characterLine
			if err := r.call(c, http.MethodPost, charactersPath+"?id="+url.QueryEscape(name), json.RawMessage(data), &l); err != nil {
				return err
			}
			for _, text := range m.Remarks { // the appliance got only the manifest, so it has no remarks about the other files of a folder or zip
				if !strings.Contains(strings.Join(l.Remarks, "\n"), text) {
					l.Remarks = append(l.Remarks, text)
				}
			}
			return r.print(c, l, func(out io.Writer) { l.write(out) })
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the character in commands; without it, a name derived from the manifest's")
	return r.register(c)
}

// readManifest reads a manifest from a file, a folder, a zip or an https address.
func readManifest(c *cobra.Command, source string) (manifest.Manifest, error) {
	return manifest.Read(c.Context(), &http.Client{Timeout: 30 * time.Second}, source)
}

func characterExportCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:     "export CHARACTER",
		Short:   "Print a character as one manifest file, with everything that was imported with it",
		Example: "perch character export leo >leo.json",
		RunE: func(c *cobra.Command, args []string) error {
			var m json.RawMessage
			return r.callAndPrint(c, http.MethodGet, charactersPath+"/"+url.PathEscape(args[0]), nil, &m, func(out io.Writer) {
				_ = command.WriteJSON(out, m) // fails only if the output is closed
			})
		},
	})
}

func characterUseCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "use ROBOT CHARACTER",
		Short: "Give a robot a character; default is the household's own character",
		Example: `perch character use kitchen leo
			perch character use kitchen default`,
		RunE: func(c *cobra.Command, args []string) error {
			var d deviceLine
			return r.callAndPrint(c, http.MethodPut, robotPath(args[0]), map[string]string{"character": args[1]}, &d, func(out io.Writer) {
				fmt.Fprintf(out, "%s is %s now\n", plain.Text(cmp.Or(d.Name, d.ID)), plain.Text(cmp.Or(d.Persona, agent.DefaultCharacter)))
			})
		},
	})
}

func characterRemoveCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:     "remove CHARACTER",
		Short:   "Remove a character that was imported, and its passport",
		Long:    "A character is not removed if a robot has it, or if a skin has talked with it in the last ten minutes.",
		Example: "perch character remove leo",
		RunE: func(c *cobra.Command, args []string) error {
			var result struct {
				OK bool `json:"ok"`
			}
			return r.callAndPrint(c, http.MethodDelete, charactersPath+"/"+url.PathEscape(args[0]), nil, &result, func(out io.Writer) {
				fmt.Fprintf(out, "%s is removed\n", plain.Text(args[0]))
			})
		},
	})
}

func characterCardCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "card CHARACTER",
		Short: "Print the ERC-8004 registration file of a character, for owners who register it themselves",
		Long: "The file is made from the character's passport and manifest. Perch does not sign anything on a chain and does not publish the file. " +
			"What is missing in the file is printed on standard error.",
		Example: "perch character card leo >registration.json",
		RunE: func(c *cobra.Command, args []string) error {
			var card struct {
				File    json.RawMessage `json:"file"`
				Remarks []string        `json:"remarks"`
			}
			if err := r.call(c, http.MethodGet, charactersPath+"/"+url.PathEscape(args[0])+"/card", nil, &card); err != nil {
				return err
			}
			for _, text := range card.Remarks {
				fmt.Fprintln(c.ErrOrStderr(), plain.Text(text))
			}
			return command.WriteJSON(c.OutOrStdout(), card.File)
		},
	})
}

func characterCheckCommand() *cobra.Command {
	o := &output{}
	return o.register(&cobra.Command{
		Use:     "check FILE",
		Short:   "Print what is wrong with a manifest, and which of its wishes no appliance can fulfil",
		Example: "perch character check leo.json",
		RunE: func(c *cobra.Command, args []string) error {
			m, err := readManifest(c, args[0])
			if err != nil {
				return err
			}
			l := characterLine{Character: admin.Character{ID: m.ID(), Name: m.Name, Description: m.Description, Brain: m.Brain.Provider,
				Language: m.Language, Voice: m.Voice.ID, Tools: m.Tools, MemoryTokens: m.MemoryTokens, Skills: []string{}, Remarks: m.Remarks,
				Robots: []string{}}}
			for _, s := range m.Skills {
				l.Skills = append(l.Skills, s.URI)
			}
			if m.Brain.Model != "" {
				l.Remarks = append(l.Remarks, "The model of this manifest only chooses among several brains of the provider.")
			}
			return o.print(c, l, func(out io.Writer) { l.write(out) })
		},
	})
}
