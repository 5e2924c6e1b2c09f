package config

import (
	"os"
	"path/filepath"

	"perch/remote/supervisor"
)

// Paths in the container when Home Assistant runs Perch as an app (add-on).
const (
	appData   = "/data"
	appFolder = "/config" // the app's configuration folder, which the owner can edit
)

// appIngress is the address on which the app serves the page for Home Assistant's ingress, a proxy.
// Only the host and other apps can reach this address.
const appIngress = supervisor.Gateway + ":8005"

// isApp reports whether Home Assistant's Supervisor has started this program.
func isApp(environ []string) bool {
	_, ok := supervisor.FromEnvironment(environ)
	return ok
}

// appConfig returns the path of the app's configuration file, or "" if this process is not an app.
func appConfig() string {
	if !isApp(os.Environ()) {
		return ""
	}
	return filepath.Join(appFolder, "perch.yaml")
}

// AppOptions returns the path of the file in the data directory with the options that the owner has
// set in Home Assistant, or "" if there is no such file or this process is not an app.
func AppOptions(data string) string {
	path := filepath.Join(data, "options.json")
	if _, err := os.Stat(path); err != nil || !isApp(os.Environ()) {
		return ""
	}
	return path
}
