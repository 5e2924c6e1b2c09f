package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/logtail"
	"perch/cmd/perch/machine"
)

func serveCommand() *cobra.Command {
	s, begin := &settings{}, false
	c := s.register(&cobra.Command{
		Use:   "serve",
		Short: "Run the appliance",
		Long:  "It needs no configuration. Exit codes: 0 it was stopped, 1 failed, 2 wrong usage or configuration.",
		Example: `perch serve
			perch serve --config perch.yaml --data data --log-level debug`,
		RunE: func(c *cobra.Command, _ []string) error { return serve(c.Context(), s, begin, c.OutOrStdout()) },
	})
	f := c.Flags()
	f.StringArrayVar(&s.listen, "listen", nil, "`ADDRESS` for robots and everybody; repeatable, replaces the configuration's")
	f.StringArrayVar(&s.local, "local", nil, "loopback `ADDRESS` for programs of this machine; repeatable, replaces the configuration's")
	f.StringVar(&s.level, "log-level", "", "`debug|info|warn|error`: the least level that is logged")
	f.BoolVar(&begin, "new-database", false, "start with an empty database where there was one and it is missing; "+
		"every robot and all that was remembered is forgotten")
	return c
}

// serve runs the appliance.
func serve(ctx context.Context, s *settings, begin bool, out io.Writer) error {
	// A restore that is staged brings settings, too, and so comes first.
	early := slog.New(logTo(os.Stderr, slog.LevelInfo, toJournal(os.Getenv("JOURNAL_STREAM"), os.Stderr)))
	if err := datadir.Archive(config.Data(s.data), version, early).Finish(); err != nil {
		return err
	}
	c, err := s.load()
	if err != nil {
		return err
	}
	logs := logtail.New()
	log := slog.New(logs.Handler(logTo(os.Stderr, c.Level(), toJournal(os.Getenv("JOURNAL_STREAM"), os.Stderr))))
	slog.SetDefault(log) // some libraries write to the standard logger
	for _, w := range c.Warnings(config.File(s.config), config.Data(s.data), time.Now()) {
		log.Warn("the installation needs attention", "part", w.Part, "what", w.What)
	}
	a, err := appliance.New(&c, appliance.Options{Data: config.Data(s.data), Log: log, Version: version, Built: machine.BuiltAt(built),
		FirstSteps: out, Flags: s.flags(), NewDatabase: begin,
		Logs: logs, Overlay: s.overlay(), Doctor: s.examine})
	if err != nil {
		return err
	}
	err = a.Run(ctx)
	a.Close()
	if errors.Is(err, appliance.ErrRestart) {
		log.Info("perch restarts")
		return restart()
	}
	return err
}

// restart replaces this process by the program, with the same arguments, so that a restart takes
// no service manager.
func restart() error {
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ())
	}
	return fmt.Errorf("restart: %w", err)
}
