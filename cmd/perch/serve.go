package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
)

// list is a flag that may be given more than once.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// newFlags returns a flag set whose errors become usageErrors.
func newFlags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// parse reads the flags of a command, wherever they stand, and returns the
// arguments, of which there must be that many.
func parse(f *flag.FlagSet, args []string, least, most int) ([]string, error) {
	var rest []string
	for {
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			return nil, helpError{options: f}
		}
		if err != nil {
			return nil, usageError(fmt.Sprintf("%s: %v", f.Name(), err))
		}
		if f.NArg() == 0 {
			break
		}
		rest = append(rest, f.Arg(0))
		args = f.Args()[1:]
	}
	if len(rest) < least || len(rest) > most {
		return nil, usageError("it is used as: " + usedAs(f.Name()))
	}
	return rest, nil
}

// usedAs is how a command is written.
func usedAs(name string) string {
	for _, c := range commands() {
		if c.name == name {
			return strings.TrimSpace("perch " + name + " " + c.arguments)
		}
	}
	return "perch " + name
}

// settings are the flags that say what to run.
type settings struct {
	config, data, level string
	listen, local       list
	judge               bool // the service's user is to read what it names, where that is another
}

func (s *settings) register(f *flag.FlagSet) {
	f.StringVar(&s.config, "config", "", "`FILE` of the configuration")
	f.StringVar(&s.data, "data", "", "`DIR` of its data")
}

// again are these flags for another command about the same appliance.
func (s *settings) again() (flags string) {
	if s.config != "" {
		flags += " --config " + config.ShellWord(s.config)
	}
	if s.data != "" {
		flags += " --data " + config.ShellWord(s.data)
	}
	return flags
}

// load is the configuration these flags lead to.
func (s *settings) load() (config.Config, error) {
	from := s.source()
	c, err := from.Load()
	if err != nil {
		return c, err
	}
	if len(s.listen) > 0 {
		c.Listen = s.listen
	}
	if len(s.local) > 0 {
		c.Local = s.local
	}
	if s.level != "" {
		c.Log.Level = s.level
	}
	return c, from.Recheck(&c)
}

// source is where the configuration is.
func (s *settings) source() config.Source {
	from := config.Source{File: config.File(s.config), Environ: os.Environ(), Check: appliance.CheckPart}
	if s.judge {
		from.Service = config.Reader(from.File)
	}
	return from
}

// serve runs the appliance.
func serve(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	f := newFlags("serve")
	s.register(f)
	f.Var(&s.listen, "listen", "`ADDRESS` for robots and everybody; repeatable, replaces the configuration's")
	f.Var(&s.local, "local", "loopback `ADDRESS` for programs of this machine; repeatable, replaces the configuration's")
	f.StringVar(&s.level, "log-level", "", "`debug|info|warn|error`: what is worth a line")
	begin := f.Bool("new-database", false, "start with an empty database where there was one and it is missing; every robot and all that was remembered is forgotten")
	if _, err := parse(f, args, 0, 0); err != nil {
		return err
	}
	c, err := s.load()
	if err != nil {
		return err
	}
	log := slog.New(logTo(os.Stderr, c.Level(), toJournal(os.Getenv("JOURNAL_STREAM"), os.Stderr)))
	slog.SetDefault(log) // some libraries write to the standard logger
	for _, w := range c.Warnings(config.File(s.config), config.Data(s.data), time.Now()) {
		log.Warn("this should be mended", "part", w.Part, "what", w.What)
	}
	a, err := appliance.New(&c, appliance.Options{Data: config.Data(s.data), Log: log, Version: version, Built: appliance.BuiltAt(built), Next: appliance.Next{Out: out, Flags: s.again()}, NewDatabase: *begin})
	if err != nil {
		return err
	}
	err = a.Run(ctx)
	a.Close()
	if errors.Is(err, appliance.ErrRestart) {
		log.Info("perch begins anew")
		return again()
	}
	return err
}

// again runs this program in the place of this process, as it was started: it
// does not take a service manager to restart.
func again() error {
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ())
	}
	return fmt.Errorf("begin anew: %w", err)
}

// checkConfig says every fault of a configuration.
func checkConfig(_ context.Context, args []string, out io.Writer) error {
	rest, err := parse(newFlags("check-config"), args, 0, 1)
	if err != nil {
		return err
	}
	s := settings{config: strings.Join(rest, ""), judge: true}
	from := s.source()
	path, service := from.File, from.Service
	c, err := from.Load()
	if err == nil {
		err = appliance.CheckRecognizers(&c)
	}
	if err != nil {
		var wrong config.Faults
		if errors.As(err, &wrong) {
			return wrong
		}
		return config.Faults{err.Error()}
	}
	file := path
	if path == "" {
		path = "no file: the defaults"
	}
	for _, w := range c.Warnings(file, "", time.Now()) {
		fmt.Fprintf(out, "warning: %s: %s\n", w.Part, w.What)
	}
	if service != nil {
		fmt.Fprintf(out, "%s: no faults, and the service's user %s can read what it names\n", path, service.Name)
		return nil
	}
	fmt.Fprintf(out, "%s: no faults\n", path)
	return nil
}
