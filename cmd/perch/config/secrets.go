package config

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"perch/driver"
)

// Mask replaces secrets in texts that are shown.
const Mask = "••••••"

// maskedSecret is shown in JSON in place of a secret. Set reports whether the secret is set.
type maskedSecret struct {
	Set bool `json:"set"`
}

var (
	errUnmaskable = errors.New("the file is not shown, because it contains a secret that spans several lines or has an unusual form; " +
		"write the secret in one line, or put it into a file (key_file, token_file, password_file)")
	errNoYAML = errors.New("the file is not shown, because it is not valid YAML, so secrets cannot be found in it")
)

// These patterns recognize secrets by the name of a key or flag, or by the form of an address.
// yamlComment finds the comments in which commentedSecret is looked for.
var (
	secretKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(^|[_-])(key|apikey|token|password|passwd|secret|authorization)$`)
	})
	secretFlag      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^--?[\w-]*(key|token|password|secret)(=|$)`) })
	commentedSecret = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b([\w-]*(?:key|token|password|passwd|secret|authorization))(["']?[ \t]*:[ \t]+|["']?=)("[^"\n]+"|'[^'\n]+'|[^\s,}\]#"']+)`)
	})
	yamlComment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)(^|[ \t])#.*$`) })
	userInfo    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^\s/@]+@`) })
	secretQuery = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://\S+\?\S*=`) })
)

// isSecretName reports whether the value of a key is secret, judging by the name of the key. Keys that
// are added later and keys of other programs are therefore recognized.
func isSecretName(name string) bool { return secretKey().MatchString(name) && name != "public_key" }

// isSecret reports whether the value of the key at path is a secret. The entries of a list are as secret as
// the list.
func isSecret(path []string) bool {
	for len(path) > 0 && strings.Trim(path[len(path)-1], "0123456789") == "" {
		path = path[:len(path)-1]
	}
	isPath := strings.Join(path, ".") == "tls.key" // the path of a file
	return len(path) > 0 && isSecretName(path[len(path)-1]) && !isPath
}

// isSecretFlag reports whether an argument of a program is a flag whose value, the next argument, is
// secret.
func isSecretFlag(argument string) bool {
	return secretFlag().MatchString(argument) && !strings.Contains(argument, "=")
}

// isSecretAddress reports whether value, the value of the key at path, is an address with a user, a
// password or a query, which may be secret. It returns true also for an invalid URL if the key is url.
func isSecretAddress(path []string, value string) bool {
	if userInfo().MatchString(value) {
		return true
	}
	if len(path) == 0 || path[len(path)-1] != "url" {
		return secretQuery().MatchString(value)
	}
	u, err := url.Parse(value)
	return err != nil || u.User != nil || u.RawQuery != ""
}

// secretMasker holds the secrets of a configuration, so that they can be masked wherever they appear: in a
// YAML alias, a copy, a comment or a fault.
type secretMasker struct {
	texts    map[string]bool
	replacer *strings.Replacer // masks secrets of minMaskedLength or more bytes within other texts; nil if none exist
}

// minMaskedLength is the minimum length, in bytes, of a secret that is masked within other texts.
// Shorter texts are parts of many words.
const minMaskedLength = 6

// newSecretMasker returns the secretMasker of a list of secrets. It reorders and overwrites the list.
func newSecretMasker(secrets []string) secretMasker {
	s := secretMasker{texts: map[string]bool{}}
	// Longer secrets come first. Otherwise a shorter secret with the same beginning would match, and the
	// rest of the longer one would be shown.
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, secret := range slices.Compact(secrets) {
		if s.texts[secret] = true; len(secret) >= minMaskedLength {
			pairs = append(pairs, secret, Mask)
		}
	}
	if len(pairs) > 0 {
		s.replacer = strings.NewReplacer(pairs...)
	}
	return s
}

// hide returns a text with its secrets masked.
func (s secretMasker) hide(text string) string {
	if s.texts[text] {
		return Mask
	}
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// isIn reports whether a text is or contains a secret.
func (s secretMasker) isIn(text string) bool { return s.hide(text) != text }

// mask returns a JSON value with its secrets masked. It may change v.
func (s secretMasker) mask(v any) any {
	switch v := v.(type) {
	case string:
		if s.isIn(v) {
			return maskedSecret{true}
		}
	case []any:
		for i, item := range v {
			v[i] = s.mask(item)
		}
	case map[string]any:
		masked := map[string]any{}
		for key, item := range v {
			masked[s.hide(key)] = s.mask(item)
		}
		return masked
	}
	return v
}

// maskFaults masks the secrets in a list of faults, and returns the list.
func (s secretMasker) maskFaults(faults []Fault) []Fault {
	for i, f := range faults {
		faults[i].Key = s.hide(f.Key)
		faults[i].Message = s.hide(f.Message)
	}
	return faults
}

// textsOf returns the texts of a secret value that must not be shown: the value, and the password in the
// value if the value is an address or a flag.
func textsOf(value string) []string {
	texts := []string{value}
	if _, after, ok := strings.Cut(value, "://"); ok {
		account, _, _ := strings.Cut(after, "/")
		if at := strings.LastIndexByte(account, '@'); at > 0 {
			if _, password, ok := strings.Cut(account[:at], ":"); ok && password != "" {
				texts = append(texts, password)
				if unescaped, err := url.PathUnescape(password); err == nil {
					texts = append(texts, unescaped)
				}
			}
		}
	}
	if _, password, ok := strings.Cut(value, "="); ok && secretFlag().MatchString(value) && password != "" {
		texts = append(texts, password)
	}
	return texts
}

// secretsOf returns the secrets that must be masked wherever they appear: those in the texts of the files, and
// those in c, the configuration that was read from the files and the environment. A value below a key env may be
// a common word; it counts as such a secret only if an alias repeats it, or if its own key or form is secret.
func secretsOf(c *Config, texts ...[]byte) secretMasker {
	var secrets []string
	for _, text := range texts {
		if root, err := parseYAML(string(text)); err == nil {
			_, inText := secretNodes(root)
			secrets = append(secrets, inText...)
		}
	}
	eachText(nil, reflect.ValueOf(c).Elem(), func(path []string, value string) {
		if value != "" && (isSecret(path) || isSecretAddress(path, value)) {
			secrets = append(secrets, textsOf(value)...)
		}
	})
	return newSecretMasker(secrets)
}

// eachText calls do for every string in v, a part of the configuration.
func eachText(path []string, v reflect.Value, do func(path []string, value string)) {
	switch v.Kind() {
	case reflect.String:
		do(path, v.String())
	case reflect.Struct:
		for _, f := range driver.Fields(v) {
			eachText(append(slices.Clone(path), f.Key), f.Value, do)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachText(append(slices.Clone(path), strconv.Itoa(i)), v.Index(i), do)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			eachText(append(slices.Clone(path), key.String()), v.MapIndex(key), do)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			eachText(path, v.Elem(), do)
		}
	}
}

// secretNodes returns the secret values of a document. texts holds the values that must also be masked
// elsewhere: all of them and the passwords in them, except values of env that no alias repeats.
func secretNodes(root *yaml.Node) (nodes []*yaml.Node, texts []string) {
	seen, aliased := map[*yaml.Node]bool{}, map[*yaml.Node]bool{}
	eachNode(root, func(n *yaml.Node) {
		if n.Kind == yaml.AliasNode && n.Alias != nil && !aliased[n.Alias] {
			eachNode(n.Alias, func(below *yaml.Node) { aliased[below] = true })
		}
	})
	add := func(n *yaml.Node, byName bool) {
		if seen[n] || n.Value == "" || n.Tag == "!!bool" {
			return
		}
		seen[n] = true
		nodes = append(nodes, n)
		if byName || aliased[n] {
			texts = append(texts, textsOf(n.Value)...)
		}
	}
	for _, top := range root.Content {
		eachSecret(nil, top, false, false, add)
	}
	return nodes, texts
}

// eachNode calls do for a node and all nodes below it. It does not follow aliases.
func eachNode(n *yaml.Node, do func(*yaml.Node)) {
	do(n)
	for _, below := range n.Content {
		eachNode(below, do)
	}
}

// eachScalar calls do for all scalars in a node, also through aliases. It skips the nodes in visited.
func eachScalar(n *yaml.Node, visited map[*yaml.Node]bool, do func(*yaml.Node)) {
	if n == nil || visited[n] {
		return
	}
	visited[n] = true
	if n.Kind == yaml.ScalarNode {
		do(n)
	}
	eachScalar(n.Alias, visited, do)
	for _, below := range n.Content {
		eachScalar(below, visited, do)
	}
}

// eachSecret calls do for every secret value in n, the node at path. secret says that all values in n are
// secret, and byName that the name of a key or flag is the reason, not only that n is the environment of a
// program. The argument byName of do is also true for a secret address.
func eachSecret(path []string, n *yaml.Node, secret, byName bool, do func(n *yaml.Node, byName bool)) {
	below := func(key string) []string { return append(slices.Clone(path), key) }
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			keyPath := below(n.Content[i].Value)
			isSecretKey := isSecret(keyPath)
			eachSecret(keyPath, n.Content[i+1], secret || isSecretKey || n.Content[i].Value == "env", byName || isSecretKey, do)
		}
	case yaml.SequenceNode:
		for i, entry := range n.Content {
			afterFlag := i > 0 && isSecretFlag(n.Content[i-1].Value)
			inFlag := strings.Contains(entry.Value, "=") && secretFlag().MatchString(entry.Value)
			eachSecret(below(strconv.Itoa(i)), entry, secret || afterFlag || inFlag, byName || afterFlag || inFlag, do)
		}
	case yaml.AliasNode:
		if secret && n.Alias != nil {
			eachScalar(n.Alias, map[*yaml.Node]bool{}, func(n *yaml.Node) { do(n, byName) })
		}
	case yaml.ScalarNode:
		if isAddress := isSecretAddress(path, n.Value); secret || isAddress {
			do(n, byName || isAddress)
		}
	}
}

// maskSecrets masks the secrets in a text of the configuration: the secrets that it finds in the text, and
// the texts in secrets. It returns an error if it cannot mask all of them.
func maskSecrets(text string, secrets secretMasker) (string, error) {
	root, err := parseYAML(text)
	if err != nil {
		return "", errNoYAML
	}
	nodes, _ := secretNodes(root)
	mustMask := len(nodes) // span must find these; the copies added below are masked by secrets.hide if span does not find them
	eachNode(root, func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && secrets.isIn(n.Value) {
			nodes = append(nodes, n)
		}
	})
	spans := map[int]int{} // end of a secret by its start, as offsets in text
	lines := strings.SplitAfter(text, "\n")
	for i, n := range nodes {
		from, to, ok := span(lines, n)
		if ok {
			spans[from] = to
		} else if i < mustMask {
			return "", errUnmaskable
		}
	}
	var masked strings.Builder
	end := 0
	for _, from := range slices.Sorted(maps.Keys(spans)) {
		masked.WriteString(text[end:from] + Mask)
		end = spans[from]
	}
	masked.WriteString(text[end:])
	// Values of keys that are commented out, and copies of secrets in comments, are secret, too.
	text = secrets.hide(yamlComment().ReplaceAllStringFunc(masked.String(), maskComment))
	if root, err = parseYAML(text); err != nil {
		return "", errUnmaskable
	}
	eachNode(root, func(n *yaml.Node) {
		if secrets.isIn(n.Value) || secrets.isIn(n.Anchor) {
			err = errUnmaskable
		}
	})
	if err != nil {
		return "", err
	}
	return text, nil
}

// maskComment masks the texts in a comment that look like secrets.
func maskComment(text string) string {
	text = commentedSecret().ReplaceAllStringFunc(text, func(found string) string {
		m := commentedSecret().FindStringSubmatch(found)
		if !isSecretName(m[1]) {
			return found
		}
		return m[1] + m[2] + Mask
	})
	return userInfo().ReplaceAllString(text, "://"+Mask+"@")
}

// span returns the offsets at which a value begins and ends in a text, whose lines include their
// newlines. ok is false if the value spans several lines or is written in an unexpected form.
func span(lines []string, n *yaml.Node) (from, to int, ok bool) {
	if n.Line < 1 || n.Line > len(lines) {
		return 0, 0, false
	}
	for _, before := range lines[:n.Line-1] {
		from += len(before)
	}
	rest := lines[n.Line-1]
	skip := func(bytes int) { from, rest = from+bytes, rest[bytes:] }
	for range n.Column - 1 {
		_, width := utf8.DecodeRuneInString(rest)
		skip(width)
	}
	for strings.HasPrefix(rest, "&") || strings.HasPrefix(rest, "!") { // skip an anchor and a tag
		end := strings.IndexAny(rest, " \t\n")
		if end < 0 {
			return 0, 0, false
		}
		skip(end)
		skip(len(rest) - len(strings.TrimLeft(rest, " \t")))
	}
	length := len(n.Value)
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return 0, 0, false
	case n.Style&yaml.DoubleQuotedStyle != 0:
		length = len(doubleQuoted().FindString(rest))
	case n.Style&yaml.SingleQuotedStyle != 0:
		length = len(singleQuoted().FindString(rest))
	case !strings.HasPrefix(rest, n.Value):
		return 0, 0, false
	}
	return from, from + length, length > 0
}

var (
	doubleQuoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^"(?:[^"\\\n]|\\.)*"`) })
	singleQuoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^'(?:[^'\n]|'')*'`) })
)
