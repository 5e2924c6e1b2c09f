// Package packaging embeds the configuration files of the packages: the sample that explains
// every key, and the file of a new installation.
package packaging

import "embed"

//go:embed perch.yaml perch-installed.yaml
var files embed.FS

// Sample returns the configuration with every key, its default and its documentation.
func Sample() string { return read("perch.yaml") }

// Installed returns the configuration of a new installation. It changes no default.
func Installed() string { return read("perch-installed.yaml") }

func read(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded files exist
	}
	return string(text)
}
