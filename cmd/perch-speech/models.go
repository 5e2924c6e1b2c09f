package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"perch/cmd/perch-speech/models"
	"perch/command"
	"perch/remote"
)

func listCommand() *cobra.Command {
	var flags modelFlags
	return flags.register(&cobra.Command{
		Use:     "list",
		Short:   "List the models that are there, and those that can be downloaded",
		Example: "perch-speech models list",
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := flags.models().All(models.Catalogue())
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tJOB\tLANGUAGE\tSIZE\tLICENCE\tSTATE\tSOURCE")
			for _, m := range all {
				state, size := "not there", ""
				if m.Installed {
					state = "there"
				}
				if m.Size() > 0 {
					size = fmt.Sprintf("%d MB", m.Size()/1_000_000)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Job, m.Language, size, m.Licence, state, m.Source)
			}
			return table.Flush()
		},
	})
}

func getCommand() *cobra.Command {
	var flags modelFlags
	return flags.register(&cobra.Command{
		Use:   "get NAME...",
		Short: "Download models",
		Long: `A download that was cut off is continued. What is in the folder already is not downloaded again. HTTPS_PROXY names a proxy.
A running perch-speech serve uses the new models at once.`,
		Example: "perch-speech models get moonshine-base-en en_US-joe-medium",
		RunE: func(c *cobra.Command, args []string) error {
			var wanted []models.Model
			for _, name := range args {
				m, ok := models.Find(name)
				if !ok {
					return command.Usagef("there is no model %q to download%s", name, didYouMean(name))
				}
				wanted = append(wanted, m)
			}
			g := models.Getter{Folder: flags.models(), Transport: remote.NewTransport(), Progress: func(f models.File, at int64) (io.Writer, func()) {
				fmt.Fprintln(c.ErrOrStderr(), f.URL)
				p := command.NewProgress(c.ErrOrStderr(), f.Size-at)
				return p, p.Finish
			}}
			for _, m := range wanted {
				fmt.Fprintf(c.OutOrStdout(), "%s: %d MB, licence: %s, %s\n", m.Name, m.Size()/1_000_000, m.Licence, m.Source)
				if err := g.Get(c.Context(), m); err != nil {
					return fmt.Errorf("%s: %w", m.Name, err)
				}
				fmt.Fprintf(c.OutOrStdout(), "%s is there\n", m.Name)
			}
			return nil
		},
	})
}

// didYouMean returns the end of an error about an unknown model: a similar name in the catalogue, or else the command
// that lists the names.
func didYouMean(name string) string {
	var names []string
	for _, m := range models.Catalogue() {
		names = append(names, m.Name)
	}
	if similar := command.DidYouMean(name, names); similar != "" {
		return similar
	}
	return "; perch-speech models list shows the models"
}

func removeCommand() *cobra.Command {
	var flags modelFlags
	return flags.register(&cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a model with its files",
		Example: "perch-speech models remove en_US-joe-medium",
		RunE:    func(_ *cobra.Command, args []string) error { return flags.models().Remove(args[0]) },
	})
}
