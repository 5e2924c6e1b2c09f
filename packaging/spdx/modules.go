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

// addModules adds the programs of Perch that a root file system contains, and the Go and npm
// modules that were built into these programs. It reads the modules' licences from the
// copyright files of the programs.
func (d *document) addModules(root string) error {
	for _, program := range []string{"perch", "perch-tools", "perch-speech"} {
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
		programID := "SPDXRef-program-" + program
		d.add(pkg{ID: programID, Name: "usr/bin/" + program, Version: d.Packages[0].Version, Declared: "MIT", Purpose: "APPLICATION"}, d.packageOf(program),
			"CONTAINS", "pkg:generic/"+program+"@"+url.QueryEscape(d.Packages[0].Version))
		d.add(pkg{ID: "SPDXRef-go-stdlib", Name: "stdlib", Version: info.GoVersion, Declared: "BSD-3-Clause"}, programID, "STATIC_LINK",
			"pkg:golang/stdlib@"+strings.TrimPrefix(info.GoVersion, "go"))
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			name := m.Path + " " + m.Version
			d.add(pkg{ID: "SPDXRef-go-" + identifier(name), Name: m.Path, Version: m.Version, Declared: d.moduleLicences("go-"+m.Path, texts[name])},
				programID, "STATIC_LINK", "pkg:golang/"+m.Path+"@"+url.QueryEscape(m.Version))
			delete(texts, name)
		}
		for name, text := range texts {
			module, version, _ := strings.Cut(name, " ")
			if strings.Contains(strings.Split(module, "/")[0], ".") {
				continue // a Go module that is not in this program, such as one for another architecture
			}
			purl := "pkg:npm/" + strings.Replace(module, "@", "%40", 1)
			if version != "" {
				purl += "@" + version
			}
			d.add(pkg{ID: "SPDXRef-npm-" + identifier(name), Name: module, Version: version, Declared: d.moduleLicences("npm-"+module, text)}, programID,
				"CONTAINS", purl)
		}
	}
	return nil
}

// packageOf returns the ID of the Debian package that contains a program. If the document has no
// such package, it returns the ID of the whole product.
func (d *document) packageOf(program string) string {
	for _, p := range d.Packages {
		if p.ID == "SPDXRef-deb-"+program {
			return p.ID
		}
	}
	return productID
}

// sections returns the licence texts of a copyright file. Each follows a line of the form
// "==== MODULE VERSION"; the key of a text is "MODULE VERSION".
func sections(copyright string) map[string]string {
	texts := map[string]string{}
	name := ""
	for line := range strings.Lines(copyright) {
		if heading, ok := strings.CutPrefix(line, "==== "); ok {
			name = strings.TrimSpace(heading)
		} else if name != "" {
			texts[name] += line
		}
	}
	return texts
}

// moduleLicences returns the SPDX expression for the licences of a module, given their text. If it
// recognizes no licence, it adds the text to the document; idPart becomes a part of the text's ID.
func (d *document) moduleLicences(idPart, text string) string {
	licences := recognize(text)
	switch {
	case strings.TrimSpace(text) == "":
		return unknown
	case len(licences) == 0:
		return d.customLicence(idPart, "", text)
	}
	return joinAnd(licences)
}
