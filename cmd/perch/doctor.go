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

// faultsFound is the error of perch doctor after it has printed faults.
type faultsFound struct{ exitCode int }

// Error implements error.
func (faultsFound) Error() string {
	return "not everything works; the first lines say what, and how to correct it"
}

// ExitCode returns the exit code of the program.
func (f faultsFound) ExitCode() int { return f.exitCode }

type doctorFlags struct {
	settings
	output
	secrets bool
}

func doctorCommand() *cobra.Command {
	f := &doctorFlags{settings: settings{asService: true}}
	c := f.output.register(f.settings.register(&cobra.Command{
		Use:   "doctor",
		Short: "Print what works, and the cause and cure of what does not",
		Long: `The command queries the running appliance. If no appliance runs, it examines the machine itself. Exit codes: 0 everything works,
1 something does not work, 2 the configuration has faults.`,
		Example: `perch doctor
			sudo perch doctor --show-secrets`,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.json && f.secrets {
				return command.Usagef("--show-secrets and --json exclude each other")
			}
			return f.diagnose(c)
		},
	}))
	c.Flags().BoolVar(&f.secrets, "show-secrets", false, "show the generated passwords")
	return c
}

// diagnose examines the installation and prints the findings.
func (f *doctorFlags) diagnose(c *cobra.Command) error {
	d, err := f.examine(c.Context(), f.data, connectLocal)
	if d == nil {
		return err
	}
	defer d.Close()
	var report strings.Builder
	faults := d.Report(&report)
	printErr := f.print(c, map[string]any{"faults": faults, "findings": d.Findings}, func(out io.Writer) {
		screen := c.OutOrStdout()
		_, _ = io.WriteString(screen, coloured(plainLines(report.String()), command.ScreenOf(screen, os.Getenv)))
		if f.secrets {
			d.ShowSecrets(out)
		}
	})
	switch {
	case err != nil:
		return faultsFound{2}
	case faults > 0:
		return faultsFound{1}
	}
	return printErr
}

// findings examines the appliance that was started with these flags, for the owner's page.
func (s *settings) findings(ctx context.Context) ([]admin.Finding, error) {
	appliance := socketClient(listener.SocketPath(config.Data(s.data)))
	defer appliance.http.CloseIdleConnections()
	d, err := s.examine(ctx, config.Data(s.data), func(string) (doctor.APIClient, error) { return appliance, nil })
	if d == nil {
		return nil, err
	}
	defer d.Close()
	return d.Items(), ctx.Err()
}

// examine examines the installation that the flags in s name. data is the data directory to examine, or
// "" for the service's; connect returns a client of the appliance that uses this directory. The caller must
// close the examination. If the configuration has faults, examine returns the examination and, as the error,
// the faults. If the configuration cannot be read, the examination is nil.
func (s *settings) examine(ctx context.Context, data string, connect func(string) (doctor.APIClient, error)) (*doctor.Examination, error) {
	loaded, err := s.load()
	var faults config.Faults
	if err != nil && !errors.As(err, &faults) {
		return nil, err
	}
	d := doctor.New(doctor.Options{Config: &loaded, File: config.File(s.config), Data: data, Version: version, Built: machine.BuiltAt(built),
		Speech: s.speech, Connect: connect})
	if err == nil {
		d.Examine(ctx)
	} else { // the parts cannot be tried with a faulty configuration
		d.ExamineFaults(ctx, faults)
	}
	return d, err
}

// coloured returns a report with the first word of each finding in colour, if the screen supports colour.
func coloured(report string, screen command.Screen) string {
	if !screen.Colour {
		return report
	}
	return strings.NewReplacer("\nFAIL ", "\n\x1b[31mFAIL\x1b[m ", "\nWARN ", "\n\x1b[33mWARN\x1b[m ", "\nok ", "\n\x1b[32mok\x1b[m ").Replace(report)
}

// connectLocal returns a client of the appliance on this machine that uses the data directory data.
func connectLocal(data string) (doctor.APIClient, error) {
	r := target{data: data}
	return r.client()
}
