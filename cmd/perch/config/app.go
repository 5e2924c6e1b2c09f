package config

import (
	"os"
	"path/filepath"

	"perch/remote/supervisor"
)

// Where things are in an app of Home Assistant.
const (
	appData   = "/data"
	appFolder = "/config" // which its owner sees
)

// The address for the ingress of Home Assistant, where this program is its app. It is one
// that other machines have no way to, and that no machine without a Supervisor has.
const appIngress = supervisor.Gateway + ":8005"

// isApp reports whether Home Assistant's Supervisor has started this program.
func isApp(environ []string) bool {
	_, is := supervisor.FromEnvironment(environ)
	return is
}

// appConfig is the configuration file of an app; empty is that this is none.
func appConfig() string {
	if !isApp(os.Environ()) {
		return ""
	}
	return filepath.Join(appFolder, "perch.yaml")
}

// AppOptions is the file in the data directory into which the Supervisor writes what the
// owner sets in Home Assistant; empty where there is none.
func AppOptions(data string) string {
	path := filepath.Join(data, "options.json")
	if _, err := os.Stat(path); err != nil || !isApp(os.Environ()) {
		return ""
	}
	return path
}
