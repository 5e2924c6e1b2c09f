package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// addDebian adds the Debian packages that are installed in a root file system. It adds nothing if
// the root file system does not use dpkg.
func (d *document) addDebian(root string) error {
	status, err := os.Open(filepath.Join(root, "var/lib/dpkg/status"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer status.Close()
	lines := bufio.NewScanner(status)
	lines.Buffer(nil, 1<<20)
	fields := map[string]string{}
	for more := true; more; {
		more = lines.Scan()
		if line := lines.Text(); more && line != "" {
			if name, value, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, " ") {
				fields[name] = value
			}
			continue
		}
		if strings.HasSuffix(fields["Status"], " installed") {
			if err := d.addPackage(root, fields); err != nil {
				return fmt.Errorf("%s: %w", fields["Package"], err)
			}
		}
		clear(fields)
	}
	return lines.Err()
}

// addPackage adds a Debian package. fields are the fields of the package's entry in dpkg's status
// file.
func (d *document) addPackage(root string, fields map[string]string) error {
	name, version, arch := fields["Package"], fields["Version"], fields["Architecture"]
	p := pkg{ID: "SPDXRef-deb-" + identifier(name), Name: name, Version: version, Declared: unknown}
	if source, _, _ := strings.Cut(fields["Source"], " "); source != "" {
		p.SourceInfo = "built from the source package " + source
	}
	copyright, err := readInRoot(root, "usr/share/doc/"+name+"/copyright")
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case isOurs(name):
		p.Declared = "MIT" // addModules adds the modules in this package
	default:
		p.Declared = d.declaredLicences(name, string(copyright))
	}
	vendor := "debian"
	if isOurs(name) {
		vendor = "perch"
	}
	d.add(p, productID, "CONTAINS", "pkg:deb/"+vendor+"/"+url.PathEscape(name)+"@"+url.QueryEscape(version)+"?arch="+arch)
	return nil
}

// isOurs reports whether a Debian package is built from this repository.
func isOurs(name string) bool { return name == "perch" || name == "perch-tools" }

// readInRoot reads a file in a root file system. It resolves symbolic links relative to that
// root.
func readInRoot(root, name string) ([]byte, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	requested := name
	for range 8 {
		path, parts := "", strings.Split(filepath.Clean(name), "/")
		isLink := false
		for i, part := range parts {
			path = filepath.Join(path, part)
			target, err := r.Readlink(path)
			if err != nil {
				continue // not a link
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join("/", filepath.Dir(path), target)
			}
			name = strings.TrimPrefix(filepath.Join(append([]string{target}, parts[i+1:]...)...), "/")
			isLink = true
			break
		}
		if !isLink {
			return r.ReadFile(name)
		}
	}
	return nil, fmt.Errorf("%s: more than 7 symbolic links must be followed", requested)
}

// declaredLicences returns the SPDX expression for the licences in a Debian copyright file. If the
// function expression does not know a licence, declaredLicences adds the licence's text to the document.
func (d *document) declaredLicences(name, copyright string) string {
	if !strings.HasPrefix(copyright, "Format:") {
		return d.customLicence(name, "", copyright)
	}
	texts, names := map[string]string{}, []string(nil) // key of texts: name of the licence
	var short string                                   // name of the current licence
	inText := false                                    // whether the line belongs to the text of the current licence
	for line := range strings.Lines(copyright) {
		if value, ok := strings.CutPrefix(line, "License:"); ok {
			if short, inText = strings.TrimSpace(value), true; short != "" && !slices.Contains(names, short) {
				names = append(names, short)
			}
			continue
		}
		inText = inText && strings.HasPrefix(line, " ")
		if inText {
			texts[short] += strings.TrimPrefix(strings.TrimSpace(line), ".") + "\n"
		}
	}
	slices.Sort(names)
	var licences []string
	for _, n := range names {
		licence, ok := expression(n)
		if !ok {
			if texts[n] == "" {
				texts[n] = n + ", as /usr/share/doc/" + name + "/copyright says\n"
			}
			licence = d.customLicence(name, n, texts[n])
		}
		licences = append(licences, licence)
	}
	return joinAnd(licences)
}

// customLicence returns a reference to a licence whose SPDX name is unknown, and adds the text of the
// licence to the document. name is the name of a Debian package, or "go-" or "npm-" and the path of a
// module. short is the name of the licence; it may be empty.
func (d *document) customLicence(name, short, content string) string {
	id := "LicenseRef-" + identifier(strings.TrimSuffix(name+"-"+short, "-"))
	if !slices.ContainsFunc(d.Texts, func(t text) bool { return t.ID == id }) {
		d.Texts = append(d.Texts, text{ID: id, Text: content, Name: short})
	}
	return id
}

// joinAnd returns the expression for licences that all apply, without duplicates. For no licences it
// returns unknown.
func joinAnd(licences []string) string {
	var terms []string
	for _, licence := range licences {
		if strings.Contains(licence, " OR ") {
			terms = append(terms, licence)
		} else {
			terms = append(terms, strings.Split(licence, " AND ")...)
		}
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	if len(terms) == 0 {
		return unknown
	}
	for i, term := range terms {
		if len(terms) > 1 && strings.Contains(term, " OR ") {
			terms[i] = "(" + term + ")"
		}
	}
	return strings.Join(terms, " AND ")
}
