// Package child decides what the programs that Perch starts, such as MCP servers and
// coding agents, get of Perch's own environment.
package child

import "strings"

// Environ returns an environment without the entries that are for Perch alone: its keys,
// what the service manager passes to it, and the token of Home Assistant's Supervisor.
func Environ(environ []string) []string {
	kept := []string{} // not nil, which os/exec takes for all of ours
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); !own(name) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// own reports whether a variable is for Perch alone.
func own(name string) bool {
	for _, prefix := range []string{"PERCH_", "LISTEN_", "WATCHDOG_", "SUPERVISOR_", "HASSIO_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY", "INVOCATION_ID", "JOURNAL_STREAM":
		return true
	case "VTUBER_AUTH_KEY": // skins' own name for our key
		return true
	}
	return false
}
