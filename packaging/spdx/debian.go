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

// addDebian adds the packages installed in a root; without dpkg it adds nothing.
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
		p.Declared = "MIT" // its modules are listed separately
	default:
		p.Declared = d.declared(name, string(copyright))
	}
	maker := "debian"
	if isOurs(name) {
		maker = "perch"
	}
	d.add(p, whole, "CONTAINS", "pkg:deb/"+maker+"/"+url.PathEscape(name)+"@"+url.QueryEscape(version)+"?arch="+arch)
	return nil
}

func isOurs(name string) bool { return name == "perch" || name == "perch-tools" }

// readInRoot reads a file of a root, with symbolic links resolved within the root.
func readInRoot(root, name string) ([]byte, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for range 8 {
		done, parts := "", strings.Split(filepath.Clean(name), "/")
		linked := false
		for i, part := range parts {
			done = filepath.Join(done, part)
			target, err := r.Readlink(done)
			if err != nil {
				continue // no link
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join("/", filepath.Dir(done), target)
			}
			name = strings.TrimPrefix(filepath.Join(append([]string{target}, parts[i+1:]...)...), "/")
			linked = true
			break
		}
		if !linked {
			return r.ReadFile(name)
		}
	}
	return nil, fmt.Errorf("%s is a loop of symbolic links", name)
}

// declared returns the expression of the licences that a Debian copyright file names.
func (d *document) declared(name, copyright string) string {
	if !strings.HasPrefix(copyright, "Format:") {
		return d.customLicence(name, "", copyright)
	}
	texts, names := map[string]string{}, []string(nil)
	var short string
	within := false
	for line := range strings.Lines(copyright) {
		if value, ok := strings.CutPrefix(line, "License:"); ok {
			if short, within = strings.TrimSpace(value), true; short != "" && !slices.Contains(names, short) {
				names = append(names, short)
			}
			continue
		}
		within = within && strings.HasPrefix(line, " ")
		if within {
			texts[short] += strings.TrimPrefix(strings.TrimSpace(line), ".") + "\n"
		}
	}
	slices.Sort(names)
	var all []string
	for _, n := range names {
		licence, known := expression(n)
		if !known {
			if texts[n] == "" {
				texts[n] = n + ", as /usr/share/doc/" + name + "/copyright says\n"
			}
			licence = d.customLicence(name, n, texts[n])
		}
		all = append(all, licence)
	}
	return joinAnd(all)
}

// customLicence returns the reference of a licence that SPDX has no name for, which includes its text.
func (d *document) customLicence(name, short, content string) string {
	id := "LicenseRef-" + identifier(strings.TrimSuffix(name+"-"+short, "-"))
	if !slices.ContainsFunc(d.Texts, func(t text) bool { return t.ID == id }) {
		d.Texts = append(d.Texts, text{ID: id, Text: content, Name: short})
	}
	return id
}

// joinAnd joins licences that all apply into an expression.
func joinAnd(all []string) string {
	var single []string
	for _, one := range all {
		if strings.Contains(one, " OR ") {
			single = append(single, one)
		} else {
			single = append(single, strings.Split(one, " AND ")...)
		}
	}
	slices.Sort(single)
	all = slices.Compact(single)
	if len(all) == 0 {
		return unknown
	}
	for i, one := range all {
		if len(all) > 1 && strings.Contains(one, " OR ") {
			all[i] = "(" + one + ")"
		}
	}
	return strings.Join(all, " AND ")
}
