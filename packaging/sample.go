// Package packaging holds what the packages bring, as far as the program itself
// needs it: the configuration that explains every key, and the one that an
// installation begins with.
package packaging

import "embed"

//go:embed perch.yaml perch-installed.yaml
var files embed.FS

// Sample is the configuration with every key, its default and what it means.
func Sample() string { return read("perch.yaml") }

// Installed is the configuration that an installation begins with. It changes
// nothing.
func Installed() string { return read("perch-installed.yaml") }

func read(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}
