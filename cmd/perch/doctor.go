package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"perch/cmd/perch/config"
	"perch/cmd/perch/doctor"
	"perch/cmd/perch/listener"
	"perch/cmd/perch/machine"
	"perch/command"
	"perch/gateway/owner/admin"
)

// unwell is the error of perch doctor, whose findings have been printed.
type unwell struct{ code int }

func (unwell) Error() string {
	return "not everything works; the first lines say what, and how to mend it"
}
func (u unwell) ExitCode() int { return u.code }

// doctorFlags are the options of perch doctor.
type doctorFlags struct {
	settings
	output
	secrets bool
}

func doctorCommand() *cobra.Command {
	f := &doctorFlags{settings: settings{judge: true}}
	c := f.output.register(f.settings.register(&cobra.Command{
		Use:   "doctor",
		Short: "Print what works and, for what does not, cause and cure",
		Long: `It asks the running appliance, and examines the machine itself where none runs. Exit codes: 0 everything works,
1 something does not, 2 the configuration has faults.`,
		Example: `perch doctor
			sudo perch doctor --show-secrets`,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.json && f.secrets {
				return command.Usagef("--show-secrets goes without --json")
			}
			return f.diagnose(c)
		},
	}))
	c.Flags().BoolVar(&f.secrets, "show-secrets", false, "show the generated passwords")
	return c
}

// diagnose prints what works. It asks a running appliance, or examines the machine itself if none
// runs.
func (f *doctorFlags) diagnose(c *cobra.Command) error {
	d, err := f.examined(c.Context(), f.data, connectLocal)
	if d == nil {
		return err
	}
	defer d.Close()
	var report strings.Builder
	faults := d.Report(&report)
	printed := f.print(c, map[string]any{"faults": faults, "findings": d.Findings}, func(out io.Writer) {
		screen := c.OutOrStdout()
		_, _ = io.WriteString(screen, coloured(plainLines(report.String()), command.ScreenOf(screen, os.Getenv)))
		if f.secrets {
			d.ShowSecrets(out)
		}
	})
	switch {
	case err != nil:
		return unwell{2}
	case faults > 0:
		return unwell{1}
	}
	return printed
}

// examine examines the appliance that these flags have started, for its owner's page.
func (s *settings) examine(ctx context.Context) ([]admin.Finding, error) {
	appliance := overSocket(listener.SocketPath(config.Data(s.data)))
	defer appliance.http.CloseIdleConnections()
	d, err := s.examined(ctx, config.Data(s.data), func(string) (doctor.APIClient, error) { return appliance, nil })
	if d == nil {
		return nil, err
	}
	defer d.Close()
	return d.Items(), ctx.Err()
}

// examined returns an examination of what these flags lead to, which the caller closes. Its error
// are the faults of the configuration, or that this cannot be read; then the examination is nil.
func (s *settings) examined(ctx context.Context, data string, connect func(string) (doctor.APIClient, error)) (*doctor.Examination, error) {
	loaded, err := s.load()
	var wrong config.Faults
	if err != nil && !errors.As(err, &wrong) {
		return nil, err
	}
	d := doctor.New(doctor.Options{Config: &loaded, File: config.File(s.config), Data: data, Version: version, Built: machine.BuiltAt(built),
		Connect: connect})
	if err == nil {
		d.Examine(ctx)
	} else { // nothing can be tried by such a configuration
		d.ExamineFaults(ctx, wrong)
	}
	return d, err
}

// coloured returns a report with the first word of each finding in colour, if the screen has it.
func coloured(report string, on command.Screen) string {
	if !on.Colour {
		return report
	}
	return strings.NewReplacer("\nFAIL ", "\n\x1b[31mFAIL\x1b[m ", "\nWARN ", "\n\x1b[33mWARN\x1b[m ", "\nok ", "\n\x1b[32mok\x1b[m ").Replace(report)
}

// connectLocal returns a client of the appliance that runs on a data directory of this machine.
func connectLocal(data string) (doctor.APIClient, error) {
	r := target{data: data}
	return r.client()
}
