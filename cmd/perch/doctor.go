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

// unwell is the doctor's error. Its findings have been printed.
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

// diagnose prints what works. It asks a running appliance, and examines the
// machine itself where none runs.
func (f *doctorFlags) diagnose(c *cobra.Command) error {
	loaded, err := f.load()
	var wrong config.Faults
	if err != nil && !errors.As(err, &wrong) {
		return err
	}
	d := doctor.New(doctor.Options{Config: &loaded, File: config.File(f.config), Data: f.data, Version: version, Built: machine.BuiltAt(built),
		Connect: connectLocal})
	defer d.Close()
	if err == nil {
		d.Examine(c.Context())
	} else { // nothing can be tried by such a configuration
		d.Misconfigured(c.Context(), wrong)
	}
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

// examine looks at the appliance that these flags have started, as perch doctor
// does. What it finds goes to the owner's page.
func (s *settings) examine(ctx context.Context) ([]admin.Finding, error) {
	loaded, err := s.load()
	var wrong config.Faults
	if err != nil && !errors.As(err, &wrong) {
		return nil, err
	}
	ours := overSocket(listener.SocketPath(config.Data(s.data)))
	defer ours.http.CloseIdleConnections()
	d := doctor.New(doctor.Options{Config: &loaded, File: config.File(s.config), Data: config.Data(s.data), Version: version,
		Built: machine.BuiltAt(built), Connect: func(string) (doctor.Asker, error) { return ours, nil }})
	defer d.Close()
	if err == nil {
		d.Examine(ctx)
	} else {
		d.Misconfigured(ctx, wrong)
	}
	return d.Items(), ctx.Err()
}

// coloured returns a report with the first word of each finding in colour, on a
// screen that has it.
func coloured(report string, on command.Screen) string {
	if !on.Colour {
		return report
	}
	return strings.NewReplacer("\nFAIL ", "\n\x1b[31mFAIL\x1b[m ", "\nWARN ", "\n\x1b[33mWARN\x1b[m ", "\nok ", "\n\x1b[32mok\x1b[m ").Replace(report)
}

// connectLocal reaches the appliance that runs on a data directory here.
func connectLocal(data string) (doctor.Asker, error) {
	r := target{data: data}
	return r.client()
}
