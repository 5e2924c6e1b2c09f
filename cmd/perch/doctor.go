package main

import (
	"context"
	"errors"
	"flag"
	"io"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
	"perch/cmd/perch/doctor"
)

// errUnwell makes the doctor's exit code.
var errUnwell = errors.New("not everything works; the first lines say what, and how to mend it")

// diagnose prints what works. It asks a running appliance, and examines the
// machine itself where none runs.
func diagnose(ctx context.Context, args []string, out io.Writer) error {
	s := settings{judge: true}
	f := newFlags("doctor")
	secrets := doctorFlags(f, &s)
	if _, err := parse(f, args, 0, 0); err != nil {
		return err
	}
	c, err := s.load()
	var wrong config.Faults
	if err != nil && !errors.As(err, &wrong) {
		return err
	}
	d := doctor.New(doctor.Options{Config: &c, File: config.File(s.config), Data: s.data, Version: version, Built: appliance.BuiltAt(built),
		Connect: connectLocal})
	defer d.Close()
	if err == nil {
		d.Examine(ctx)
	} else { // nothing can be tried by such a configuration
		d.Misconfigured(ctx, wrong)
	}
	unwell := d.Report(out) > 0
	if *secrets {
		d.ShowSecrets(out)
	}
	if err != nil {
		return wrongConfig{}
	}
	if unwell {
		return errUnwell
	}
	return nil
}

// wrongConfig ends the doctor where a configuration has faults. They have been printed.
type wrongConfig struct{}

func (wrongConfig) Error() string { return errUnwell.Error() }
func (wrongConfig) Unwrap() error { return config.Faults(nil) }

func doctorFlags(f *flag.FlagSet, s *settings) (secrets *bool) {
	s.register(f)
	return f.Bool("show-secrets", false, "show the generated passwords")
}

// connectLocal reaches the appliance that runs on a data directory here.
func connectLocal(data string) (doctor.Asker, error) {
	r := target{data: data}
	return r.client()
}
