package main

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"perch/voice"
)

// The linker sets these variables; see the Makefile.
var (
	version = "dev"
	commit  = "" // hash of the Git commit; if empty, versionCommand reads it from the build information
	built   = "" // time of the build (RFC 3339); may be empty
)

func versionCommand() *cobra.Command {
	o := &output{}
	return o.register(&cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "perch version --json",
		RunE: func(c *cobra.Command, _ []string) error {
			revision := commit
			if info, ok := debug.ReadBuildInfo(); ok && revision == "" {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = s.Value
					}
				}
			}
			result := map[string]string{"version": version, "commit": revision, "built": built, "opus": voice.OpusVersion()}
			return o.print(c, result, func(out io.Writer) {
				fmt.Fprintf(out, "perch %s\ncommit %s\nbuilt %s\n%s\n", version, revision, built, voice.OpusVersion())
			})
		},
	})
}
