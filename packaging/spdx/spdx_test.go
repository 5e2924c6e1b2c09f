package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perch/must"
)

const status = `Package: libmood
Status: install ok installed
Architecture: amd64
Source: mood (1.0)
Version: 1:2.0~rc1+b2
Description: feels
 Package: not one

Package: libgone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: g++
Status: install ok installed
Architecture: all
Version: 14

Package: perch
Status: install ok installed
Architecture: amd64
Version: 1.0
`

const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
License: GPL-2+ or Expat

Files: a
License: Smile
 You may smile.
 .
 Else you may not.

Files: b
License: LGPL-2.1
`

// machine returns a root file system in which the test program, which has modules, takes the place of perch.
func machine(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	self := must.Value(os.Executable())(t)
	program := must.Value(os.ReadFile(self))(t)
	for name, text := range map[string]string{
		"var/lib/dpkg/status":                  status,
		"usr/share/doc/libmood-real/copyright": copyright,
		"usr/share/doc/g++/copyright":          "It is free.\n",
		"usr/bin/perch":                        string(program),
		"usr/share/doc/perch/copyright": "MIT\n\n\n==== lit 3.3.3\n\nRedistribution and use in source and binary forms\nendorse or\n * promote\n\n" +
			"==== @a/b 1.0\n\nOnly on Sundays.\n",
	} {
		path := filepath.Join(root, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o755))
	}
	// Debian packages of one source link their folders. An absolute link is relative to the root.
	must.Succeed(t, os.Symlink("/usr/share/doc/libmood-real", filepath.Join(root, "usr/share/doc/libmood")))
	return root
}

func printed(t *testing.T, root string) (document, string) {
	t.Helper()
	var out bytes.Buffer
	must.Succeed(t, run([]string{"-name", "perch", "-version", "1.0", root}, "1700000000", &out))
	var d document
	must.Succeed(t, json.Unmarshal(out.Bytes(), &d))
	return d, out.String()
}

func TestDocument(t *testing.T) {
	root := machine(t)
	d, first := printed(t, root)
	if _, second := printed(t, root); second != first {
		t.Error("it says other things the second time")
	}
	got := map[string]pkg{}
	ids := regexp.MustCompile(`^(SPDXRef|LicenseRef)-[A-Za-z0-9.-]+$`)
	for _, p := range d.Packages {
		got[p.Name] = p
		if !ids.MatchString(p.ID) {
			t.Errorf("%q is no identifier", p.ID)
		}
	}
	for name, want := range map[string][2]string{
		"libmood": {"(GPL-2.0-or-later OR MIT) AND LGPL-2.1-only AND LicenseRef-libmood-Smile", "pkg:deb/debian/libmood@1%3A2.0~rc1%2Bb2?arch=amd64"},
		"g++":     {"LicenseRef-g-2b2b-", "pkg:deb/debian/g++@14?arch=all"},
		"perch":   {unknown, ""},
		"lit":     {"BSD-3-Clause", "pkg:npm/lit@3.3.3"},
		"@a/b":    {"LicenseRef-npm--a-b", "pkg:npm/%40a/b@1.0"},
		"stdlib":  {"BSD-3-Clause", "pkg:golang/stdlib@" + strings.TrimPrefix(got["stdlib"].Version, "go")},
	} {
		p := got[name]
		if name == "perch" {
			continue // the product and the package have the same name
		}
		if p.Declared != want[0] || len(p.References) != 1 || p.References[0].Locator != want[1] {
			t.Errorf("%s is %+v, want %v", name, p, want)
		}
	}
	if _, is := got["libgone"]; is {
		t.Error("what is removed is in it")
	}
	texts := map[string]string{}
	for _, l := range d.Texts {
		texts[l.ID] = l.Text
		if !ids.MatchString(l.ID) {
			t.Errorf("%q is no identifier", l.ID)
		}
	}
	for _, p := range d.Packages {
		for _, own := range regexp.MustCompile(`LicenseRef-[A-Za-z0-9.-]+`).FindAllString(p.Declared, -1) {
			if texts[own] == "" {
				t.Errorf("%s has no text", own)
			}
		}
	}
	if told := texts["LicenseRef-libmood-Smile"]; told != "You may smile.\n\nElse you may not.\n" {
		t.Errorf("a text is %q", told)
	}
	for _, r := range []relationship{{documentID, "DESCRIBES", productID}, {productID, "CONTAINS", "SPDXRef-deb-libmood"},
		{productID, "CONTAINS", "SPDXRef-deb-perch"},
		{"SPDXRef-deb-perch", "CONTAINS", "SPDXRef-program-perch"}, {"SPDXRef-program-perch", "STATIC_LINK", "SPDXRef-go-stdlib"}} {
		found := false
		for _, have := range d.Relationships {
			found = found || have == r
		}
		if !found {
			t.Errorf("it does not say %v", r)
		}
	}
}

func TestEveryModuleHasALicence(t *testing.T) {
	listed, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}",
		"perch/cmd/perch", "perch/firmware-tools").Output()
	must.Succeed(t, err)
	seen := map[string]bool{}
	for line := range strings.Lines(string(listed)) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if seen[module] {
			continue
		}
		seen[module] = true
		files, _ := filepath.Glob(filepath.Join(dir, "LICEN[CS]E*"))
		copying, _ := filepath.Glob(filepath.Join(dir, "COPYING*"))
		var all string
		for _, file := range append(files, copying...) {
			if info, err := os.Stat(file); err == nil && info.IsDir() {
				continue
			}
			text := must.Value(os.ReadFile(file))(t)
			all += string(text)
		}
		if len(recognize(all)) == 0 {
			t.Errorf("the licence of %s is none that is known here", module)
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d modules were found", len(seen))
	}
}

func TestBadRoots(t *testing.T) {
	for _, c := range []struct{ epoch, root, says string }{
		{"", t.TempDir(), "SOURCE_DATE_EPOCH"},
		{"1", t.TempDir(), "neither Debian packages nor Perch's programs"},
	} {
		err := run([]string{"-name", "a", "-version", "1", c.root}, c.epoch, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("it says %v, not %q", err, c.says)
		}
	}
	// A link that leads out of the root is not followed.
	root := machine(t)
	must.Succeed(t, os.Remove(filepath.Join(root, "usr/share/doc/libmood")))
	must.Succeed(t, os.Symlink("../../../../../../../../../../etc", filepath.Join(root, "usr/share/doc/libmood")))
	if d, _ := printed(t, root); len(d.Packages) < 4 {
		t.Errorf("it has %v", d.Packages)
	}
}
