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
	"perch/command"
)

func serveCommand() *cobra.Command {
	s, newDatabase := &settings{}, false
	c := s.register(&cobra.Command{
		Use:   "serve",
		Short: "Run the appliance",
		Long:  "The appliance needs no configuration file. Exit codes: 0 stopped, 1 failed, 2 wrong usage or configuration.",
		Example: `perch serve
			perch serve --config perch.yaml --data data --log-level debug`,
		RunE: func(c *cobra.Command, _ []string) error { return serve(c.Context(), s, newDatabase, c.OutOrStdout()) },
	})
	f := c.Flags()
	f.StringArrayVar(&s.listen, "listen", nil, "`ADDRESS` for robots and the network; repeatable, replaces those in the configuration")
	f.StringArrayVar(&s.local, "local", nil, "loopback `ADDRESS` for programs on this machine; repeatable, replaces those in the configuration")
	f.StringVar(&s.level, "log-level", "", "`debug|info|warn|error`: the lowest level that is logged")
	f.BoolVar(&newDatabase, "new-database", false, "start with an empty database if an earlier one is missing; "+
		"all robots and memories are forgotten")
	return c
}

// serve runs the appliance. When it is ready, it prints to out how to connect a robot, open the
// page and run perch doctor. On a terminal it also prints a link that logs a browser in once.
func serve(ctx context.Context, s *settings, newDatabase bool, out io.Writer) error {
	// A staged backup contains settings, so it is restored before the configuration is loaded.
	earlyLog := slog.New(logTo(os.Stderr, slog.LevelInfo, isJournal(os.Getenv("JOURNAL_STREAM"), os.Stderr)))
	if err := datadir.Archive(config.Data(s.data), version, earlyLog).FinishRestore(); err != nil {
		return err
	}
	c, err := s.load()
	if err != nil {
		return err
	}
	logs := logtail.New()
	log := slog.New(logs.Handler(logTo(os.Stderr, c.Level(), isJournal(os.Getenv("JOURNAL_STREAM"), os.Stderr))))
	slog.SetDefault(log) // some libraries write to the standard logger
	for _, w := range c.Warnings(config.File(s.config), config.Data(s.data), time.Now()) {
		log.Warn("the installation needs attention", "part", w.Part, "what", w.What)
	}
	screen, isFile := command.File(out)
	a, err := appliance.New(&c, appliance.Options{Data: config.Data(s.data), Log: log, Version: version, Built: machine.BuiltAt(built),
		FirstSteps: out, Terminal: isFile && isTerminal(screen), Flags: s.flags(), NewDatabase: newDatabase,
		Logs: logs, Overlay: s.overlay(), Doctor: s.findings})
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

// restart runs this program again, in the same process and with the same arguments. It needs no
// service manager.
func restart() error {
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ())
	}
	return fmt.Errorf("restart: %w", err)
}
