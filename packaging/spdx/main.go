// Program spdx prints the contents of a root file system, with the licences, as an SPDX 2.3
// document: Debian's packages, and the Go and npm modules in our programs.
//
//	spdx -name NAME -version VERSION FOLDER
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "spdx:", err)
		os.Exit(1)
	}
}

func run(args []string, epoch string, to io.Writer) error {
	f := flag.NewFlagSet("spdx", flag.ContinueOnError)
	name := f.String("name", "", "of what the document describes")
	version := f.String("version", "", "its version")
	if err := f.Parse(args); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return errors.New("SOURCE_DATE_EPOCH is the time of the document, in seconds; it is not set")
	}
	if *name == "" || *version == "" || f.NArg() != 1 {
		return errors.New("usage: spdx -name NAME -version VERSION FOLDER")
	}
	d := newDocument(*name, *version, time.Unix(seconds, 0))
	if err := errors.Join(d.addDebian(f.Arg(0)), d.addModules(f.Arg(0))); err != nil {
		return err
	}
	if len(d.Packages) == 1 {
		return fmt.Errorf("%s has neither Debian's packages nor a program of ours", f.Arg(0))
	}
	return d.print(to)
}

// document is a document of SPDX 2.3; its fields are SPDX's.
type document struct {
	Version       string         `json:"spdxVersion"`
	DataLicence   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []pkg          `json:"packages"`
	Relationships []relationship `json:"relationships"`
	Texts         []text         `json:"hasExtractedLicensingInfos,omitempty"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type pkg struct {
	ID         string      `json:"SPDXID"`
	Name       string      `json:"name"`
	Version    string      `json:"versionInfo,omitempty"`
	Download   string      `json:"downloadLocation"`
	Analyzed   bool        `json:"filesAnalyzed"`
	Concluded  string      `json:"licenseConcluded"`
	Declared   string      `json:"licenseDeclared"`
	Copyright  string      `json:"copyrightText"`
	SourceInfo string      `json:"sourceInfo,omitempty"`
	Purpose    string      `json:"primaryPackagePurpose,omitempty"`
	References []reference `json:"externalRefs,omitempty"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Kind string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// text is the text of a licence that is not in SPDX's list.
type text struct {
	ID   string `json:"licenseId"`
	Text string `json:"extractedText"`
	Name string `json:"name,omitempty"`
}

const (
	unknown   = "NOASSERTION"
	whole     = "SPDXRef-whole"
	itself    = "SPDXRef-DOCUMENT"
	purl      = "purl"
	byManager = "PACKAGE-MANAGER"
)

func newDocument(name, version string, at time.Time) *document {
	return &document{
		Version: "SPDX-2.3", DataLicence: "CC0-1.0", ID: itself, Name: name + " " + version,
		Creation:      creation{at.UTC().Format(time.RFC3339), []string{"Tool: perch-spdx"}},
		Packages:      []pkg{{ID: whole, Name: name, Version: version, Download: unknown, Concluded: unknown, Declared: unknown, Copyright: unknown}},
		Relationships: []relationship{{itself, "DESCRIBES", whole}},
	}
}

// add adds a package and its relationship to its container, unless they are there already.
func (d *document) add(p pkg, within, how, locator string) {
	if !slices.ContainsFunc(d.Packages, func(known pkg) bool { return known.ID == p.ID }) {
		p.Download, p.Concluded, p.Copyright = unknown, unknown, unknown
		p.References = []reference{{byManager, purl, locator}}
		d.Packages = append(d.Packages, p)
	}
	if r := (relationship{within, how, p.ID}); !slices.Contains(d.Relationships, r) {
		d.Relationships = append(d.Relationships, r)
	}
}

// print prints the document. Its order and its name depend only on its content.
func (d *document) print(to io.Writer) error {
	slices.SortFunc(d.Packages[1:], func(a, b pkg) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(d.Relationships[1:], func(a, b relationship) int {
		return strings.Compare(a.From+" "+a.Kind+" "+a.To, b.From+" "+b.Kind+" "+b.To)
	})
	slices.SortFunc(d.Texts, func(a, b text) int { return strings.Compare(a.ID, b.ID) })
	content, err := json.Marshal(d)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	d.Namespace = "https://spdx.org/spdxdocs/" + identifier(d.Name) + "-" + hex.EncodeToString(sum[:])
	e := json.NewEncoder(to)
	e.SetIndent("", " ")
	return e.Encode(d)
}

var invalidChars = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// identifier converts a name to the characters that SPDX allows. Other characters become
// their codes, so that different names stay different.
func identifier(name string) string {
	return invalidChars.ReplaceAllStringFunc(name, func(s string) string {
		if strings.Trim(s, " /_@") == "" {
			return "-"
		}
		return "-" + hex.EncodeToString([]byte(s)) + "-"
	})
}
