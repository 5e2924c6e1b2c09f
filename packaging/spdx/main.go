// Command spdx prints a list of the software in a root file system, in the standard format SPDX
// 2.3: the Debian packages, the Go and npm modules in Perch's programs, and the licences of all.
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

// run writes the document that the arguments describe to w. epoch is the time of the document in
// seconds since 1970.
func run(args []string, epoch string, w io.Writer) error {
	f := flag.NewFlagSet("spdx", flag.ContinueOnError)
	name := f.String("name", "", "name of the described product")
	version := f.String("version", "", "version of the described product")
	if err := f.Parse(args); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return errors.New("SOURCE_DATE_EPOCH must be set to the time of the document, in seconds since 1970")
	}
	if *name == "" || *version == "" || f.NArg() != 1 {
		return errors.New("usage: spdx -name NAME -version VERSION FOLDER")
	}
	d := newDocument(*name, *version, time.Unix(seconds, 0))
	if err := errors.Join(d.addDebian(f.Arg(0)), d.addModules(f.Arg(0))); err != nil {
		return err
	}
	if len(d.Packages) == 1 {
		return fmt.Errorf("%s contains neither Debian packages nor Perch's programs", f.Arg(0))
	}
	return d.print(w)
}

// document is an SPDX 2.3 document. SPDX defines the JSON names in this and the following types.
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

// creation says when and with what tool a document was created.
type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

// pkg is a package: a Debian package, a program or a module.
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

// reference names a package as another system does, for example by a package URL.
type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

// relationship is a relationship between two elements of a document.
type relationship struct {
	From string `json:"spdxElementId"`
	Kind string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// text is the text of a licence whose SPDX name is unknown.
type text struct {
	ID   string `json:"licenseId"`
	Text string `json:"extractedText"`
	Name string `json:"name,omitempty"`
}

const (
	unknown    = "NOASSERTION"      // SPDX's word for an unknown value
	productID  = "SPDXRef-whole"    // ID of the package that contains everything
	documentID = "SPDXRef-DOCUMENT" // ID of the document
)

// newDocument returns a document that describes a product, but does not list its contents yet.
func newDocument(name, version string, created time.Time) *document {
	return &document{
		Version: "SPDX-2.3", DataLicence: "CC0-1.0", ID: documentID, Name: name + " " + version,
		Creation:      creation{created.UTC().Format(time.RFC3339), []string{"Tool: perch-spdx"}},
		Packages:      []pkg{{ID: productID, Name: name, Version: version, Download: unknown, Concluded: unknown, Declared: unknown, Copyright: unknown}},
		Relationships: []relationship{{documentID, "DESCRIBES", productID}},
	}
}

// add adds a package, and the relationship of another element to it, unless the document already
// contains them. container is the ID of the other element, kind the kind of the relationship, and
// locator the package URL.
func (d *document) add(p pkg, container, kind, locator string) {
	if !slices.ContainsFunc(d.Packages, func(existing pkg) bool { return existing.ID == p.ID }) {
		p.Download, p.Concluded, p.Copyright = unknown, unknown, unknown
		p.References = []reference{{"PACKAGE-MANAGER", "purl", locator}}
		d.Packages = append(d.Packages, p)
	}
	if r := (relationship{container, kind, p.ID}); !slices.Contains(d.Relationships, r) {
		d.Relationships = append(d.Relationships, r)
	}
}

// print writes the document to w. It sorts the lists, after the product itself, and derives the namespace
// from the content, so that the output is reproducible.
func (d *document) print(w io.Writer) error {
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
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(d)
}

// invalidChars matches characters that SPDX does not allow in an ID.
var invalidChars = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// identifier converts a name to a part of an SPDX ID. It encodes invalid characters in
// hexadecimal, except for the common separators, which become hyphens.
func identifier(name string) string {
	return invalidChars.ReplaceAllStringFunc(name, func(s string) string {
		if strings.Trim(s, " /_@") == "" {
			return "-"
		}
		return "-" + hex.EncodeToString([]byte(s)) + "-"
	})
}
