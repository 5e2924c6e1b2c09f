// Package homeassistant contains the blueprints (templates of automations) that Home Assistant imports from Perch.
package homeassistant

import (
	"embed"
	"path"
)

//go:embed blueprints/automation/perch/*.yaml
var files embed.FS

// Blueprint returns the file of a blueprint, such as "announce.yaml". It returns an error that wraps fs.ErrNotExist if
// there is no such file.
func Blueprint(name string) ([]byte, error) {
	return files.ReadFile(path.Join("blueprints/automation/perch", path.Base(name)))
}
