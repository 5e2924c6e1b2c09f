package config

import "os"

// File returns the path of the configuration file: named if it is not empty, or else the first of these
// files that exists: perch.yaml in the folder of the Home Assistant app, /etc/perch/perch.yaml, and
// perch.yaml in the working directory. It returns "" if none of them exists.
func File(named string) string {
	if named != "" {
		return named
	}
	for _, path := range []string{appConfig(), systemConfig, "perch.yaml"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// Data returns the data directory: named if it is not empty, or else the directory that systemd has
// set. Without systemd it is the Home Assistant app's directory or /var/lib/perch, if this user can
// write into it, or else the folder data in the working directory.
func Data(named string) string {
	if named != "" {
		return named
	}
	if dir := os.Getenv("STATE_DIRECTORY"); dir != "" {
		return dir
	}
	if isApp(os.Environ()) && Writable(appData) {
		return appData
	}
	if Writable(SystemData) {
		return SystemData
	}
	return "data"
}

// Writable reports whether this user can create files in a directory.
func Writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return false
	}
	return f.Close() == nil && os.Remove(f.Name()) == nil
}
