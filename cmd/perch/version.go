package main

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"perch/voice"
)

// Set by the linker; see the Makefile.
var (
	version = "dev"
	commit  = ""
	built   = ""
)

func versionCommand() *cobra.Command {
	o := &output{}
	return o.register(&cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "perch version --json",
		RunE: func(c *cobra.Command, _ []string) error {
			rev := commit
			if info, ok := debug.ReadBuildInfo(); ok && rev == "" {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						rev = s.Value
					}
				}
			}
			shown := map[string]string{"version": version, "commit": rev, "built": built, "opus": voice.OpusVersion()}
			return o.print(c, shown, func(out io.Writer) {
				fmt.Fprintf(out, "perch %s\ncommit %s\nbuilt %s\n%s\n", version, rev, built, voice.OpusVersion())
			})
		},
	})
}
