package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"perch/voice"
)

// Set by the linker; see the Makefile.
var (
	version = "dev"
	commit  = ""
	built   = ""
)

func printVersion(_ context.Context, args []string, out io.Writer) error {
	if _, err := parse(newFlags("version"), args, 0, 0); err != nil {
		return err
	}
	rev := commit
	if info, ok := debug.ReadBuildInfo(); ok && rev == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				rev = s.Value
			}
		}
	}
	fmt.Fprintf(out, "perch %s\ncommit %s\nbuilt %s\n%s\n", version, rev, built, voice.OpusVersion())
	return nil
}
