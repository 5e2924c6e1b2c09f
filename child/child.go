// Package child prepares the environment of programs that Perch starts, such as MCP servers
// and coding agents.
package child

import "strings"

// Environ returns an environment without the variables that only Perch may read: Perch's own
// (PERCH_*), which include its keys, the variables that systemd sets for a service, and the variables of Home
// Assistant's Supervisor, which include a token.
func Environ(environ []string) []string {
	filtered := []string{} // not nil: os/exec would use the environment of this process
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); !isPrivate(name) {
			filtered = append(filtered, entry)
		}
	}
	return filtered
}

// isPrivate reports whether only Perch may read a variable.
func isPrivate(name string) bool {
	for _, prefix := range []string{"PERCH_", "LISTEN_", "WATCHDOG_", "SUPERVISOR_", "HASSIO_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY", "INVOCATION_ID", "JOURNAL_STREAM":
		return true
	case "VTUBER_AUTH_KEY": // skins expect Perch's key in this variable
		return true
	}
	return false
}
