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

// Files of a bundle. Others are not used, but are part of its digest.
const (
	manifestFile     = "manifest.json"
	instructionsFile = "SKILL.md"
	toolsFile        = "tools.json"
	signatureFile    = "signature.json" // signs the digest, and is not part of it
)

// manifest is manifest.json. Unknown keys are ignored, because they are for programs
// that show the agent.
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
	Dependencies needs
	Integrity    map[string]string
}

// needs are dependencies, encoded as an object of versions or as a list of names.
type needs map[string]string

func (n *needs) UnmarshalJSON(data []byte) error {
	var names []string
	if json.Unmarshal(data, &names) == nil {
		*n = needs{}
		for _, name := range names {
			(*n)[name] = "*"
		}
		return nil
	}
	versions := map[string]string{}
	if json.Unmarshal(data, &versions) != nil {
		return errors.New("dependencies is a list of names, or an object of names with versions")
	}
	*n = versions
	return nil
}

// Read reads the bundle of a folder. Its error names the invalid file. A bundle that
// can be read is not necessarily trusted: see Trust.
func Read(folder string) (Skill, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Skill{}, fmt.Errorf("open the skill: %w", err)
	}
	defer root.Close()
	c, err := contentsOf(root.FS())
	if err != nil {
		return Skill{}, err
	}
	var m manifest
	if err := c.manifest(&m); err != nil {
		return Skill{}, err
	}
	s := Skill{Name: m.Name, Version: m.Version, Description: agent.Speakable(m.Description), Gesture: m.Gesture, Voice: m.Voice, Exposed: m.Exposed,
		Input: m.Input, Handler: m.Handler, Sentences: m.Sentences, Slots: m.Slots, Servers: m.Servers, Folder: folder, Digest: digest(c.sums)}
	if err := cmp.Or(m.check(), intact(m.Integrity, c.sums)); err != nil {
		return Skill{}, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if s.Needs, err = needed(m); err != nil {
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

// contents holds the files of a bundle. Each is read only once, so that the used data is
// the signed data.
type contents struct {
	sums map[string]string // SHA-256 by path, of all files except the signature
	used map[string][]byte // the files that are used
}

// contentsOf reads a bundle. Only regular files are allowed, because a link could lead outside.
func contentsOf(files fs.FS) (contents, error) {
	c, left := contents{map[string]string{}, map[string][]byte{}}, int64(limit.Answer)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%.80s is a link or a device; a bundle has plain files only", name)
		case len(c.sums) == mostFiles:
			return fmt.Errorf("the bundle has more than %d files", mostFiles)
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

// digest returns the digest of a bundle: of its files' names and digests, sorted by name.
func digest(sums map[string]string) string {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(hash, "%q %s\n", name, sums[name])
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// intact compares a manifest's hexadecimal digests with those of the files.
func intact(expected, sums map[string]string) error {
	for name, want := range expected {
		if name == manifestFile || strings.TrimPrefix(strings.ToLower(want), "sha256-") != sums[path.Clean(name)] {
			return fmt.Errorf("integrity: %.80s is not the file that was published; get the skill again", name)
		}
	}
	return nil
}

// file returns a file of at most most bytes, or nil if it does not exist.
func (c contents) file(name string, most int) ([]byte, error) {
	if len(c.used[name]) > most {
		return nil, fmt.Errorf("it is larger than %d bytes; shorten it", most)
	}
	return c.used[name], nil
}

func (c contents) manifest(into *manifest) error {
	data, err := c.file(manifestFile, limit.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", manifestFile, err)
	case data == nil:
		return fmt.Errorf("%s is missing; a skill is a folder with one", manifestFile)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: this is not the JSON it should be: %w", manifestFile, err)
	}
	return nil
}

// instructions returns SKILL.md without its front matter, which repeats the manifest.
func (c contents) instructions() (string, error) {
	data, err := c.file(instructionsFile, limit.Result)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", errors.New("this is not text in UTF-8")
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
		return fmt.Errorf("spec is %.40q; this appliance knows skill/0.1", m.Spec)
	case !named(m.Name):
		return fmt.Errorf("%.60q is no name for a skill; give it 1 to %d small letters, digits, - and _", m.Name, mostNameLength)
	case agent.Speakable(m.Description) == "" || len(m.Description) > mostDescription:
		return fmt.Errorf("description is missing, or longer than %d bytes", mostDescription)
	case m.Gesture != "" && !named(m.Gesture):
		return fmt.Errorf("animationHint %.40q is no gesture's name", m.Gesture)
	case len(m.Voice) > mostPattern:
		return fmt.Errorf("voicePattern is longer than %d bytes", mostPattern)
	case len(m.Servers) > mostServers:
		return fmt.Errorf("mcpServers has more than %d servers", mostServers)
	}
	if _, err := parseVersion(m.Version); err != nil {
		return fmt.Errorf("version: %w", err)
	}
	for name, at := range m.Servers {
		if err := address(at); err != nil || len(name) > 32 || !wordOfName().MatchString(name) {
			return fmt.Errorf("mcpServers %.40q: it needs a name of at most 32 small letters, and an address such as http://host:port/mcp", name)
		}
	}
	for tag, all := range m.Sentences {
		if len(all) > mostSentences || slices.ContainsFunc(all, func(s string) bool { return len(s) > 200 }) {
			return fmt.Errorf("sentences has more than %d of the language %.20q, or one longer than 200 bytes", mostSentences, tag)
		}
	}
	for slot, argument := range m.Slots {
		if len(m.Slots) > mostSentences || argument == "" || len(slot)+len(argument) > 80 {
			return errors.New("slots is an object of at most 20 names: the argument for each {slot} of the sentences")
		}
	}
	_, err := readSchema(m.Input)
	return err
}

// address returns an error for a text that is not an address to call.
func address(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("it is no address; write it as http://host:port/path, without a user")
	}
	return nil
}

// needed returns a manifest's dependencies by the name of the skill.
func needed(m manifest) (map[string]string, error) {
	if len(m.Dependencies) > mostNeeds {
		return nil, fmt.Errorf("dependencies names more than %d skills", mostNeeds)
	}
	all := map[string]string{}
	for at, version := range m.Dependencies {
		name := path.Base(strings.TrimSuffix(at, "/"))
		switch {
		case strings.Contains(at, "://"):
			return nil, fmt.Errorf("dependencies: %.80q cannot be fetched; put the skill beside this one and name it by its name", at)
		case !named(name):
			return nil, fmt.Errorf("dependencies: %.60q is no skill's name", at)
		case name == m.Name:
			return nil, fmt.Errorf("dependencies: the skill %s needs itself; remove it there", name)
		}
		if _, err := parseRange(version); err != nil {
			return nil, fmt.Errorf("dependencies: %s: %w", name, err)
		}
		all[name] = version
	}
	return all, nil
}

// tools returns the tools of tools.json, which is optional.
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
		return nil, fmt.Errorf("this is not the JSON it should be: %w", err)
	}
	if len(d.Tools) > mostTools {
		return nil, fmt.Errorf("it has more than %d tools", mostTools)
	}
	var all []Tool
	for _, t := range d.Tools {
		tool := Tool{thinker.Tool{Name: t.Name, Description: agent.Speakable(t.Description), Schema: t.Schema}, t.URL, t.Server}
		if len(tool.Schema) == 0 {
			tool.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if slices.ContainsFunc(all, func(o Tool) bool { return o.Name == t.Name }) {
			return nil, fmt.Errorf("two tools are called %s; rename one of them", t.Name)
		}
		if err := tool.check(m.Servers); err != nil {
			return nil, fmt.Errorf("tool %.60q: %w", t.Name, err)
		}
		all = append(all, tool)
	}
	return all, nil
}

func (t Tool) check(servers map[string]string) error {
	switch {
	case !toolName().MatchString(t.Name):
		return errors.New("it needs a name of at most 64 letters, digits, - and _")
	case t.Description == "" || len(t.Description) > mostDescription:
		return fmt.Errorf("its description is missing, or longer than %d bytes", mostDescription)
	case t.URL != "" && t.Server != "":
		return errors.New("it has both a url and an mcp server; keep one of them")
	case t.URL == "" && t.Server == "":
		return errors.New("it has neither a url nor an mcp server; Perch runs no JavaScript, so handlers.js is not used")
	case t.URL != "":
		if err := address(t.URL); err != nil {
			return fmt.Errorf("its url: %w", err)
		}
	case servers[t.Server] == "":
		return fmt.Errorf("its mcp server %.40q is not in mcpServers of %s", t.Server, manifestFile)
	}
	_, err := readSchema(t.Schema)
	return err
}
