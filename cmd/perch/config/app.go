package config

import (
	"os"
	"path/filepath"

	"perch/remote/supervisor"
)

// Paths in an app of Home Assistant.
const (
	appData   = "/data"
	appFolder = "/config" // which its owner sees
)

// appIngress is the address for the ingress of Home Assistant if this program is its app. Other
// machines cannot reach it, and no machine without a Supervisor has it.
const appIngress = supervisor.Gateway + ":8005"

// isApp reports whether Home Assistant's Supervisor has started this program.
func isApp(environ []string) bool {
	_, is := supervisor.FromEnvironment(environ)
	return is
}

// appConfig returns the configuration file of an app, or "" if this process is not one.
func appConfig() string {
	if !isApp(os.Environ()) {
		return ""
	}
	return filepath.Join(appFolder, "perch.yaml")
}

// AppOptions returns the file in the data directory with the options that the owner sets in Home
// Assistant, or "" if there is no such file.
func AppOptions(data string) string {
	path := filepath.Join(data, "options.json")
	if _, err := os.Stat(path); err != nil || !isApp(os.Environ()) {
		return ""
	}
	return path
}
