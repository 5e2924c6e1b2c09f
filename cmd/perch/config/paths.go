package config

import "os"

// File returns the path of the configuration file: named if it is not empty, or else the first file
// that exists of the app's, the system's and perch.yaml in the working directory. It returns "" if none
// exists.
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

// Data returns the data directory: named if it is not empty, or else the one set by systemd, the
// app's or the system's if this user can write into it, or data in the working directory.
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
