package skill

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"perch/agent"
	"perch/agent/thinker"
	"perch/limit"
)

// Files of a bundle that this package uses. Other files are only checked and hashed.
const (
	manifestFile     = "manifest.json"
	instructionsFile = "SKILL.md"
	toolsFile        = "tools.json"
	signatureFile    = "signature.json" // not part of the digest, since it contains the signature of the digest
)

// manifest is the content of manifest.json. Unknown keys are ignored, because they are for
// viewers: programs that show the agent.
type manifest struct {
	Spec         string
	Name         string
	Version      string
	Description  string
	Gesture      string          `json:"animationHint"`
	Voice        string          `json:"voicePattern"`
	Exposed      bool            `json:"mcpExposed"`
	Input        json.RawMessage `json:"inputSchema"`
	Handler      string
	Sentences    map[string][]string
	Slots        map[string]string
	Servers      map[string]string `json:"mcpServers"`
	Dependencies dependencies
	Integrity    map[string]string
}

// dependencies maps the name of each required skill to a range of versions.
type dependencies map[string]string

// UnmarshalJSON parses an object of version ranges, or a list of names.
func (d *dependencies) UnmarshalJSON(data []byte) error {
	var names []string
	if json.Unmarshal(data, &names) == nil {
		*d = dependencies{}
		for _, name := range names {
			(*d)[name] = "*"
		}
		return nil
	}
	versions := map[string]string{}
	if json.Unmarshal(data, &versions) != nil {
		return errors.New("dependencies is a list of names, or an object of names with versions")
	}
	*d = versions
	return nil
}

// Read reads the bundle in a folder. Errors name the invalid file, unless the bundle has too many
// files or is too large. Read does not check whether the bundle is trusted, see Trust.Check.
func Read(folder string) (Skill, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Skill{}, fmt.Errorf("open the skill: %w", err)
	}
	defer root.Close()
	c, err := readContents(root.FS())
	if err != nil {
		return Skill{}, err
	}
	var m manifest
	if err := c.manifest(&m); err != nil {
		return Skill{}, err
	}
	s := Skill{Name: m.Name, Version: m.Version, Description: agent.Speakable(m.Description), Gesture: m.Gesture, Voice: m.Voice, Exposed: m.Exposed,
		Input: m.Input, Handler: m.Handler, Sentences: m.Sentences, Slots: m.Slots, Servers: m.Servers, Folder: folder, Digest: digest(c.sums)}
	if err := cmp.Or(m.check(), checkIntegrity(m.Integrity, c.sums)); err != nil {
		return Skill{}, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if s.Needs, err = parseDependencies(m); err != nil {
		return Skill{}, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if s.Instructions, err = c.instructions(); err != nil {
		return Skill{}, fmt.Errorf("%s: %w", instructionsFile, err)
	}
	if s.Tools, err = c.tools(m); err != nil {
		return Skill{}, fmt.Errorf("%s: %w", toolsFile, err)
	}
	if s.Handler == "" && slices.ContainsFunc(s.Tools, func(t Tool) bool { return t.Name == s.Name }) {
		s.Handler = s.Name
	}
	if s.Handler != "" && !slices.ContainsFunc(s.Tools, func(t Tool) bool { return t.Name == s.Handler }) {
		return Skill{}, fmt.Errorf("%s: handler names the tool %.40q, which %s does not have", manifestFile, s.Handler, toolsFile)
	}
	s.Signature, err = c.signature()
	return s, err
}

// contents holds the files of a bundle. Each file is read only once: otherwise the file
// could change between the digest and the use.
type contents struct {
	sums map[string]string // SHA-256 in hex of all files except the signature; key: path
	used map[string][]byte // content of the files that this package uses; key: path
}

// readContents reads the files of a bundle: at most maxFiles, and at most limit.Answer bytes in
// total. A link is an error, because it could lead out of the bundle.
func readContents(files fs.FS) (contents, error) {
	c, left := contents{map[string]string{}, map[string][]byte{}}, int64(limit.Answer)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%.80s is a link or a device; a bundle contains only regular files", name)
		case len(c.sums) == maxFiles:
			return fmt.Errorf("the bundle has more than %d files", maxFiles)
		}
		f, err := files.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		hash := sha256.New()
		to := io.Writer(hash)
		var used bytes.Buffer
		if slices.Contains([]string{manifestFile, instructionsFile, toolsFile, signatureFile}, name) {
			to = io.MultiWriter(hash, &used)
		}
		n, err := io.Copy(to, io.LimitReader(f, left+1))
		if left -= n; left < 0 {
			return fmt.Errorf("the bundle is larger than %d MB", limit.Answer>>20)
		}
		if used.Len() > 0 {
			c.used[name] = used.Bytes()
		}
		if name != signatureFile {
			c.sums[name] = hex.EncodeToString(hash.Sum(nil))
		}
		return err
	})
	if err != nil {
		return contents{}, fmt.Errorf("read the skill: %w", err)
	}
	return c, nil
}

// digest returns the digest of a bundle. sums contains the digests of the files by path.
func digest(sums map[string]string) string {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(hash, "%q %s\n", name, sums[name])
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// checkIntegrity compares the digests in a manifest with the digests of the files. Both
// maps have hexadecimal digests by path; those in expected may begin with "sha256-". The manifest
// itself must not be in expected.
func checkIntegrity(expected, sums map[string]string) error {
	for name, want := range expected {
		if name == manifestFile || strings.TrimPrefix(strings.ToLower(want), "sha256-") != sums[path.Clean(name)] {
			return fmt.Errorf("integrity: %.80s differs from the published file; get the skill again", name)
		}
	}
	return nil
}

// file returns the content of a file that this package uses, or nil if it does not exist or is
// empty. A file of more than maxSize bytes is an error.
func (c contents) file(name string, maxSize int) ([]byte, error) {
	if len(c.used[name]) > maxSize {
		return nil, fmt.Errorf("it is larger than %d bytes; shorten it", maxSize)
	}
	return c.used[name], nil
}

// manifest parses manifest.json.
func (c contents) manifest(into *manifest) error {
	data, err := c.file(manifestFile, limit.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", manifestFile, err)
	case data == nil:
		return fmt.Errorf("%s is missing or empty; every skill needs it", manifestFile)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: this is not the expected JSON: %w", manifestFile, err)
	}
	return nil
}

// instructions returns SKILL.md without its front matter, which repeats the manifest. Without the
// file it returns "".
func (c contents) instructions() (string, error) {
	data, err := c.file(instructionsFile, limit.Result)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", errors.New("this is not UTF-8 text")
	}
	_, body, closed := agent.FrontMatter(strings.ReplaceAll(string(data), "\r\n", "\n"))
	if !closed {
		return "", errors.New("the front matter is not closed by a line of ---")
	}
	return strings.TrimSpace(body), nil
}

// check returns the first fault of a manifest.
func (m manifest) check() error {
	switch {
	case m.Spec != "" && !strings.HasPrefix(m.Spec, "skill/0."):
		return fmt.Errorf("spec is %.40q; this appliance supports skill/0.1", m.Spec)
	case !isName(m.Name):
		return fmt.Errorf("%.60q is not a name for a skill; write 1 to %d lower-case letters, digits, - and _", m.Name, maxNameLength)
	case agent.Speakable(m.Description) == "" || len(m.Description) > maxDescription:
		return fmt.Errorf("description is missing, or longer than %d bytes", maxDescription)
	case m.Gesture != "" && !isName(m.Gesture):
		return fmt.Errorf("animationHint %.40q is not the name of a gesture", m.Gesture)
	case len(m.Voice) > maxPattern:
		return fmt.Errorf("voicePattern is longer than %d bytes", maxPattern)
	case len(m.Servers) > maxServers:
		return fmt.Errorf("mcpServers has more than %d servers", maxServers)
	}
	if _, err := parseVersion(m.Version); err != nil {
		return fmt.Errorf("version: %w", err)
	}
	for name, address := range m.Servers {
		if err := checkAddress(address); err != nil || len(name) > 32 || !nameFormat().MatchString(name) {
			return fmt.Errorf("mcpServers %.40q: it needs a name of at most 32 lower-case letters, digits, - and _, and an address such as http://host:port/mcp", name)
		}
	}
	for tag, sentences := range m.Sentences {
		if len(sentences) > maxSentences || slices.ContainsFunc(sentences, func(s string) bool { return len(s) > 200 }) {
			return fmt.Errorf("sentences has more than %d entries for the language %.20q, or one longer than 200 bytes", maxSentences, tag)
		}
	}
	for slot, argument := range m.Slots {
		if len(m.Slots) > maxSentences || argument == "" || len(slot)+len(argument) > 80 {
			return errors.New("slots has more than 20 entries, or one that has no argument or is longer than 80 bytes")
		}
	}
	_, err := parseSchema(m.Input)
	return err
}

// checkAddress checks that a text is an http or https address without a user name.
func checkAddress(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("it is not an address; write it as http://host:port/path, without a user")
	}
	return nil
}

// parseDependencies returns a manifest's dependencies: the range of versions by the name of
// the required skill. The manifest may name a skill by a path whose last element is the name.
func parseDependencies(m manifest) (map[string]string, error) {
	if len(m.Dependencies) > maxDependencies {
		return nil, fmt.Errorf("dependencies has more than %d skills", maxDependencies)
	}
	ranges := map[string]string{}
	for reference, version := range m.Dependencies {
		name := path.Base(strings.TrimSuffix(reference, "/"))
		switch {
		case strings.Contains(reference, "://"):
			return nil, fmt.Errorf("dependencies: %.80q cannot be downloaded; put the skill beside this one and write its name", reference)
		case !isName(name):
			return nil, fmt.Errorf("dependencies: %.60q is not the name of a skill", reference)
		case name == m.Name:
			return nil, fmt.Errorf("dependencies: the skill %s depends on itself; remove it from its dependencies", name)
		}
		if _, err := parseRange(version); err != nil {
			return nil, fmt.Errorf("dependencies: %s: %w", name, err)
		}
		ranges[name] = version
	}
	return ranges, nil
}

// tools parses tools.json. It returns nil if the file does not exist.
func (c contents) tools(m manifest) ([]Tool, error) {
	data, err := c.file(toolsFile, limit.Body)
	if err != nil || data == nil {
		return nil, err
	}
	var d struct {
		Tools []struct {
			Name, Description, URL string

			Schema json.RawMessage `json:"input_schema"`
			Server string          `json:"mcp"`
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("this is not the expected JSON: %w", err)
	}
	if len(d.Tools) > maxTools {
		return nil, fmt.Errorf("it has more than %d tools", maxTools)
	}
	var tools []Tool
	for _, t := range d.Tools {
		tool := Tool{thinker.Tool{Name: t.Name, Description: agent.Speakable(t.Description), Schema: t.Schema}, t.URL, t.Server}
		if len(tool.Schema) == 0 {
			tool.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if slices.ContainsFunc(tools, func(o Tool) bool { return o.Name == t.Name }) {
			return nil, fmt.Errorf("two tools are called %s; rename one of them", t.Name)
		}
		if err := tool.check(m.Servers); err != nil {
			return nil, fmt.Errorf("tool %.60q: %w", t.Name, err)
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// check returns the first fault of a tool. servers is Skill.Servers.
func (t Tool) check(servers map[string]string) error {
	switch {
	case !toolNameFormat().MatchString(t.Name):
		return errors.New("it needs a name of at most 64 letters, digits, - and _")
	case t.Description == "" || len(t.Description) > maxDescription:
		return fmt.Errorf("its description is missing or longer than %d bytes", maxDescription)
	case t.URL != "" && t.Server != "":
		return errors.New("it has both a url and an MCP server; remove one of them")
	case t.URL == "" && t.Server == "":
		return errors.New("it has neither a url nor an MCP server; Perch does not run JavaScript, so handlers.js is not used")
	case t.URL != "":
		if err := checkAddress(t.URL); err != nil {
			return fmt.Errorf("its url: %w", err)
		}
	case servers[t.Server] == "":
		return fmt.Errorf("its MCP server %.40q is not in mcpServers of %s", t.Server, manifestFile)
	}
	_, err := parseSchema(t.Schema)
	return err
}
