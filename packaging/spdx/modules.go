package main

import (
	"debug/buildinfo"
	"errors"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"os"
)

// addModules adds the modules of our programs in a root, Go's and the page's. The texts of their
// licences are in the programs' copyright files.
func (d *document) addModules(root string) error {
	for _, program := range []string{"perch", "perch-tools"} {
		file := filepath.Join(root, "usr/bin", program)
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return err
		}
		copyright, err := readInRoot(root, "usr/share/doc/"+program+"/copyright")
		if err != nil {
			return err
		}
		texts := sections(string(copyright))
		within := "SPDXRef-program-" + program
		d.add(pkg{ID: within, Name: "usr/bin/" + program, Version: d.Packages[0].Version, Declared: "MIT", Purpose: "APPLICATION"}, d.packageOf(program),
			"CONTAINS", "pkg:generic/"+program+"@"+url.QueryEscape(d.Packages[0].Version))
		d.add(pkg{ID: "SPDXRef-go-stdlib", Name: "stdlib", Version: info.GoVersion, Declared: "BSD-3-Clause"}, within, "STATIC_LINK",
			"pkg:golang/stdlib@"+strings.TrimPrefix(info.GoVersion, "go"))
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			name := m.Path + " " + m.Version
			d.add(pkg{ID: "SPDXRef-go-" + identifier(name), Name: m.Path, Version: m.Version, Declared: d.moduleLicences("go-"+m.Path, texts[name])},
				within, "STATIC_LINK", "pkg:golang/"+m.Path+"@"+url.QueryEscape(m.Version))
			delete(texts, name)
		}
		for name, licence := range texts {
			module, version, _ := strings.Cut(name, " ")
			if strings.Contains(strings.Split(module, "/")[0], ".") {
				continue // a Go module of another architecture's program
			}
			at := strings.Replace(module, "@", "%40", 1)
			if version != "" {
				at += "@" + version
			}
			d.add(pkg{ID: "SPDXRef-npm-" + identifier(name), Name: module, Version: version, Declared: d.moduleLicences("npm-"+module, licence)}, within,
				"CONTAINS", "pkg:npm/"+at)
		}
	}
	return nil
}

// packageOf returns the Debian package of a program, or else the whole document.
func (d *document) packageOf(program string) string {
	for _, p := range d.Packages {
		if p.ID == "SPDXRef-deb-"+program {
			return p.ID
		}
	}
	return whole
}

// sections returns the texts below the lines "==== MODULE VERSION" of a copyright file.
func sections(copyright string) map[string]string {
	all := map[string]string{}
	name := ""
	for line := range strings.Lines(copyright) {
		if at, ok := strings.CutPrefix(line, "==== "); ok {
			name = strings.TrimSpace(at)
		} else if name != "" {
			all[name] += line
		}
	}
	return all
}

// moduleLicences returns the licences of a module, from its texts.
func (d *document) moduleLicences(name, texts string) string {
	all := recognized(texts)
	switch {
	case strings.TrimSpace(texts) == "":
		return unknown
	case len(all) == 0:
		return d.customLicence(name, "", texts)
	}
	return joinAnd(all)
}
