// Package child prepares the environment of programs that Perch starts, such as MCP servers
// and coding agents.
package child

import "strings"

// Environ returns an environment without the entries meant for Perch only: its keys, the
// service manager's variables, and the token of Home Assistant's Supervisor.
func Environ(environ []string) []string {
	kept := []string{} // os/exec takes nil as the whole environment
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); !own(name) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// own reports whether a variable is meant for Perch only.
func own(name string) bool {
	for _, prefix := range []string{"PERCH_", "LISTEN_", "WATCHDOG_", "SUPERVISOR_", "HASSIO_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY", "INVOCATION_ID", "JOURNAL_STREAM":
		return true
	case "VTUBER_AUTH_KEY": // the skins' name for Perch's key
		return true
	}
	return false
}
