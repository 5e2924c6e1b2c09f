package main

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"perch/cmd/perch-speech/models"
)

// version is set by the linker; see the Makefile.
var version = "dev"

// modelFlags are the flags of the commands that use models.
type modelFlags struct {
	folder  string
	threads int
}

// register adds --models to a command.
func (f *modelFlags) register(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&f.folder, "models", "", "`DIR` that has a folder for each model (default: models in $STATE_DIRECTORY, in /var/lib/perch-speech for root, or else in ~/.local/share/perch-speech, and the models of packages)")
	return c
}

// registerAll adds --models and --threads to a command.
func (f *modelFlags) registerAll(c *cobra.Command) *cobra.Command {
	c.Flags().IntVar(&f.threads, "threads", 1, "`NUMBER` of processors that one model uses")
	return f.register(c)
}

// packaged is the folder of models that Debian packages install.
const packaged = "/usr/share/perch-speech/models"

// models returns the folder of models, by default with packaged as the second folder.
func (f *modelFlags) models() models.Folder {
	if f.folder == "" {
		return models.Folder(defaultFolder() + ":" + packaged)
	}
	return models.Folder(f.folder)
}

// defaultFolder returns the default folder of models. It is in the state directory if systemd runs this program as a
// service, in /var/lib/perch-speech for root, and otherwise in the user's home directory.
func defaultFolder() string {
	if state := os.Getenv("STATE_DIRECTORY"); state != "" {
		return filepath.Join(state, "models")
	}
	if os.Getuid() == 0 {
		return "/var/lib/perch-speech/models"
	}
	home, _ := os.UserHomeDir() // without a home, below the working directory
	return filepath.Join(home, ".local", "share", "perch-speech", "models")
}

// newLog returns a log to the standard error of a command.
func newLog(c *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
}
