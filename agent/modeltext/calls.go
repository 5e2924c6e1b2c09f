package modeltext

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// tools are the offered tools, by the name that canonical returns.
type tools map[string]Tool

// newTools returns the tools that the model may call.
func newTools(offered []Tool) tools {
	t := tools{}
	for _, tool := range offered {
		t[canonical(tool.Name)] = tool
	}
	return t
}

// modules returns the prefixes that models may add to the names of tools, and "".
func modules() []string {
	return []string{"", "functions.", "default_api.", "tools.", "tool.", "api.", "call:"}
}

// canonical returns a tool's name in lower case, with underscores for punctuation, and without the prefixes of modules
// and the number of the call that some models add, as in "functions.volume:0".
func canonical(name string) string {
	name = strings.TrimSpace(name)
	for _, module := range modules() {
		name = strings.TrimPrefix(name, module)
	}
	if before, number, found := strings.Cut(name, ":"); found && strings.Trim(number, "0123456789") == "" {
		name = before
	}
	return underscored(name)
}

// underscored returns name in lower case, with underscores for everything other than letters and digits.
func underscored(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return '_'
	}, name)
}

// has reports whether a tool is offered. The name may be in any spelling that canonical accepts.
func (t tools) has(name string) bool {
	_, found := t[canonical(name)]
	return found
}

// mayBegin reports whether text begins with the name of a tool, perhaps after the prefix of a module, or with print, or
// is the beginning of such a name.
func (t tools) mayBegin(text string) bool {
	n := nameLength(text)
	if n == 0 {
		return false
	}
	name, whole := underscored(text[:n]), n < len(text)
	if name == "print" || !whole && strings.HasPrefix("print", name) {
		return true
	}
	for _, module := range modules() {
		module = underscored(module)
		rest, is := strings.CutPrefix(name, module)
		if !is {
			if !whole && strings.HasPrefix(module, name) {
				return true
			}
			continue
		}
		for offered := range t {
			if rest == offered || !whole && strings.HasPrefix(offered, rest) {
				return true
			}
		}
	}
	return false
}

// nameLength returns the length of the name at the beginning of text, in bytes. It is at most maxMark.
func nameLength(text string) int {
	text = text[:min(len(text), maxMark)]
	n := strings.IndexFunc(text, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' && c != '.' && c != '-'
	})
	if n < 0 {
		return len(text)
	}
	return n
}

// call returns a call of a tool. name is the name as the model wrote it.
func (t tools) call(name string, arguments json.RawMessage) Call {
	tool, offered := t[canonical(name)]
	if !offered {
		return Call{Name: name, Arguments: arguments}
	}
	return Call{tool.Name, arguments, true}
}

// calls returns the calls in a text of any format. name is the name of the tool in the mark before the text, or "".
func (t tools) calls(text, name string) []Call {
	if calls := t.inJSON(text, name); len(calls) > 0 {
		return calls
	}
	if calls := t.inElements(text, name); len(calls) > 0 {
		return calls
	}
	var calls []Call
	for at := 0; at < len(text); {
		n := nameLength(text[at:])
		if n == 0 {
			at++
			continue
		}
		if size, call := t.pythonCall(text[at:], n); size > 0 && (call.Offered || name == "") {
			calls = append(calls, call)
			n = size
		}
		at += n
	}
	if content := canonical(anyTag().ReplaceAllString(text, "")); len(calls) == 0 && name != "" && (content == "" || content == canonical(name)) {
		return []Call{t.call(name, json.RawMessage("{}"))}
	}
	return calls
}

// inJSON returns the calls in the JSON objects and lists in text. An object that is not a call contains the arguments
// for the tool whose name precedes the object in text, or else for the tool called name.
func (t tools) inJSON(text, name string) (calls []Call) {
	for at := 0; at < len(text); {
		if text[at] != '{' && text[at] != '[' {
			at++
			continue
		}
		size := jsonEnd(text[at:])
		var value any
		if size <= 0 || json.Unmarshal([]byte(text[at:at+size]), &value) != nil && json.Unmarshal([]byte(repair(text[at:at+size])), &value) != nil {
			at++
			continue
		}
		found := t.inValue(value)
		if object, is := value.(map[string]any); is && len(found) == 0 {
			if named := t.lastName(text[:at]); named != "" {
				found = []Call{t.call(named, encode(object))}
			} else if name != "" {
				found = []Call{t.call(name, encode(object))}
			}
		}
		calls = append(calls, found...)
		text, at = text[at+size:], 0
	}
	return calls
}

// lastName returns the last name of an offered tool in text, or "".
func (t tools) lastName(text string) (name string) {
	for _, word := range strings.FieldsFunc(text, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' && c != '.' && c != '-' && c != ':'
	}) {
		if t.has(word) {
			name = word
		}
	}
	return name
}

// inValue returns the calls in a decoded JSON value.
func (t tools) inValue(value any) (calls []Call) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			calls = append(calls, t.inValue(v)...)
		}
	case map[string]any:
		for _, key := range []string{"tool_calls", "calls", "function_call", "tool_call"} {
			if inner, is := value[key]; is {
				return t.inValue(inner)
			}
		}
		if inner, is := value["function"].(map[string]any); is {
			return t.inValue(inner)
		}
		name, _ := firstOf(value, "name", "function", "tool", "tool_name", "function_name", "recipient_name", "action")
		arguments, given := firstOf(value, "arguments", "parameters", "args", "input", "tool_input", "params", "action_input", "kwargs")
		tool, named := name.(string)
		if !named || tool == "" || !given || value["description"] != nil || isSchema(arguments) {
			return nil // not a call, but for example the definition or the result of a tool
		}
		return []Call{t.call(tool, argumentsOf(arguments))}
	}
	return calls
}

// isSchema reports whether a value is a JSON Schema of arguments.
func isSchema(value any) bool {
	object, is := value.(map[string]any)
	return is && object["type"] == "object" && object["properties"] != nil
}

// firstOf returns the value of the first of the keys that object has, and whether it has any of them.
func firstOf(object map[string]any, keys ...string) (any, bool) {
	for _, key := range keys {
		if value, is := object[key]; is {
			return value, true
		}
	}
	return nil, false
}

// argumentsOf returns the arguments of a call as a JSON object. value is an object, or a string with JSON. For other
// values the result is {}.
func argumentsOf(value any) json.RawMessage {
	if text, is := value.(string); is {
		var inner any
		if json.Unmarshal([]byte(text), &inner) == nil {
			value = inner
		}
	}
	if _, is := value.(map[string]any); !is {
		return json.RawMessage("{}")
	}
	return encode(value)
}

// encode returns value as JSON on one line.
func encode(value any) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return json.RawMessage("{}")
	}
	return bytes.TrimSpace(out.Bytes())
}

// openingTag matches the opening tag of an element that names a tool or a parameter, in several notations.
var openingTag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)<(?:function|invoke|tool|parameter|param|arg)(?:=|\s+name=)["']?([\w.:-]+)["']?[^<>]*>` +
		`|<(tool_name|name|arg_key|function_name)>\s*([^<]*?)\s*</|<([A-Za-z_][\w.-]*)(?:\s[^<>]*)?>`)
})

// namespace matches the beginning of an element whose name has a prefix, such as DeepSeek's ｜DSML｜.
var namespace = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(</?)[｜|‖]*(?:\w+[｜|‖:]+)+(\w)`) })

// anyTag matches any tag.
var anyTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<[^<>]*>`) })

// inElements returns the calls in elements such as <function=volume><parameter=level>40</parameter>,
// volume<arg_key>level</arg_key><arg_value>40</arg_value>, or <volume><level>40</level></volume>.
func (t tools) inElements(text, name string) (calls []Call) {
	text = namespace().ReplaceAllString(text, "$1$2")
	arguments := map[string]any{}
	key := ""
	content := canonical(anyTag().ReplaceAllString(text, ""))
	finish := func() {
		if name != "" && (len(arguments) > 0 || len(calls) == 0 && t.has(name) && (content == "" || content == canonical(name))) {
			calls = append(calls, t.call(name, encode(arguments)))
		}
		arguments, key = map[string]any{}, ""
	}
	begin := func(tool string) {
		if canonical(tool) != canonical(name) || len(arguments) > 0 {
			finish()
		}
		name = tool
	}
	matches := openingTag().FindAllStringSubmatchIndex(text, -1)
	if len(matches) == 0 {
		return nil
	}
	group := func(m []int, n int) string {
		if m[2*n] < 0 {
			return ""
		}
		return text[m[2*n]:m[2*n+1]]
	}
	for _, m := range matches {
		element := text[m[0]:m[1]]
		value := strings.TrimSpace(text[m[1]:])
		if end := strings.Index(value, "</"); end >= 0 {
			value = strings.TrimSpace(value[:end])
		}
		named, field, fieldValue, plain := group(m, 1), group(m, 2), group(m, 3), group(m, 4)
		switch {
		case named != "" && (strings.HasPrefix(element, "<param") || strings.HasPrefix(element, "<arg")):
			arguments[named] = t.value(name, named, value)
		case named != "":
			begin(named)
		case field == "arg_key":
			if key = fieldValue; name == "" {
				name = t.lastName(text[:m[0]])
			}
		case field != "":
			begin(fieldValue)
		case plain == "arg_value" && key != "":
			arguments[key] = t.value(name, key, value)
			key = ""
		case t.has(plain):
			begin(plain)
		case name != "" && t.typeOf(name, plain) != nil && !strings.Contains(value, "<"):
			arguments[plain] = t.value(name, plain, value)
		}
	}
	finish()
	return calls
}

// typeOf returns the type of a parameter in the tool's schema, "" if the schema has no type, and nil if the
// tool has no such parameter.
func (t tools) typeOf(name, parameter string) any {
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	if json.Unmarshal(t[canonical(name)].Schema, &schema) != nil {
		return nil
	}
	if p, is := schema.Properties[parameter]; is {
		if p.Type == nil {
			return ""
		}
		return p.Type
	}
	return nil
}

// value returns the value of a parameter. It is the decoded JSON or Python literal in text, or text itself if text
// is neither or the schema requires a string. The literal None is nil even if the schema requires a string.
func (t tools) value(name, parameter, text string) any {
	var value any
	if t.typeOf(name, parameter) == "string" || json.Unmarshal([]byte(text), &value) != nil {
		switch text {
		case "True", "False":
			if t.typeOf(name, parameter) != "string" {
				return text == "True"
			}
		case "None":
			return nil
		}
		return text
	}
	return value
}

// python parses volume(level=40), print(volume(level=40)) or [volume(level=40)] at the beginning of text. n is the
// length of this expression, 0 if text does not begin with one, or -1 if its end is missing. whole tells whether no
// more text follows. calls are the calls of offered tools.
func (t tools) python(text string, whole bool) (n int, calls []Call) {
	from := 0
	if text[0] == '[' {
		from = len(text) - len(strings.TrimLeft(text[1:], " \t\r\n"))
	}
	if strings.HasPrefix(text[from:], "print(") {
		from += len("print(")
	}
	inner := text[from:]
	name := nameLength(inner)
	switch {
	case !t.mayBegin(inner) && inner != "":
		return 0, nil
	case name == len(inner) && !whole:
		return -1, nil
	case name == len(inner) || inner[name] != '(':
		return 0, nil
	}
	size := closingBracket(inner[name:])
	if from > 0 {
		size = closingBracket(text[strings.IndexAny(text, "[("):])
	}
	if size < 0 {
		return -1, nil
	}
	size += name
	if from > 0 {
		size += strings.IndexAny(text, "[(") - name
	}
	for _, call := range t.calls(text[:size], "") {
		if call.Offered {
			calls = append(calls, call)
		}
	}
	return size, calls
}

// pythonCall parses a call in Python, or with braces as Gemma writes it, at the beginning of text, with a name of n
// bytes. size is the length of the call, or 0 if text does not begin with a call of an offered tool.
func (t tools) pythonCall(text string, n int) (size int, call Call) {
	if n == len(text) || text[n] != '(' && text[n] != '{' {
		return 0, call
	}
	end := closingBracket(text[n:])
	if end < 0 || !t.has(text[:n]) {
		return 0, call
	}
	arguments := map[string]any{}
	for _, part := range splitArguments(text[n+1 : n+end-1]) {
		at := strings.IndexAny(part, "=:")
		if at < 0 {
			continue
		}
		key := strings.Trim(strings.TrimSpace(part[:at]), `"'`)
		value := strings.TrimSpace(part[at+1:])
		value = strings.ReplaceAll(value, `<|"|>`, `"`) // Gemma
		if unquoted, err := strconv.Unquote(value); err == nil {
			arguments[key] = unquoted
		} else if len(value) > 1 && value[0] == '\'' && value[len(value)-1] == '\'' {
			arguments[key] = strings.ReplaceAll(value[1:len(value)-1], `\'`, `'`)
		} else {
			arguments[key] = t.value(text[:n], key, value)
		}
	}
	return n + end, t.call(text[:n], encode(arguments))
}

// splitArguments splits text at the commas outside of brackets and quotes.
func splitArguments(text string) (parts []string) {
	from := 0
	scan(text, func(at, depth int) bool {
		if text[at] == ',' && depth == 0 {
			parts = append(parts, text[from:at])
			from = at + 1
		}
		return true
	})
	return append(parts, text[from:])
}

// closingBracket returns the length of text up to and including the bracket that closes its first bracket, or -1.
func closingBracket(text string) int {
	n := -1
	scan(text, func(at, depth int) bool {
		if depth == 0 && strings.IndexByte(")]}", text[at]) >= 0 {
			n = at + 1
			return false
		}
		return true
	})
	return n
}

// jsonEnd returns the length of the JSON object or list at the beginning of text, 0 if text does not look like JSON,
// or -1 if more text is needed.
func jsonEnd(text string) int {
	body := strings.TrimLeft(text[1:], " \t\r\n")
	if body != "" && strings.IndexByte(`"'}[{]`, body[0]) < 0 && !startsWithKey(body) {
		return 0
	}
	return closingBracket(text)
}

// startsWithKey reports whether text begins with an unquoted key of a call, or is the beginning of one.
func startsWithKey(text string) bool {
	return slices.ContainsFunc([]string{"name:", "type:", "tool:", "function:", "tool_name:", "arguments:"}, func(key string) bool {
		return strings.HasPrefix(text, key) || strings.HasPrefix(key, text)
	})
}

// scan calls each for every byte of text outside of quotes, until each returns false. at is the index of the byte,
// and depth the number of open brackets after the byte.
func scan(text string, each func(at, depth int) bool) {
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
			continue
		case c == '"' || c == '\'' && i > 0 && strings.IndexByte("=:([{, ", text[i-1]) >= 0:
			quote = c
			continue
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		}
		if !each(i, depth) {
			return
		}
	}
}

// Regular expressions of the fields of a call in invalid JSON.
var (
	nameField = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`["']?(?:name|function|tool)["']?\s*:\s*["']([\w.:-]+)`)
	})
	argumentField = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`["']?(?:arguments|parameters|args)["']?\s*:`) })
)

// looksLikeCall reports whether text, which is not valid JSON, is probably an attempt at a call.
func (t tools) looksLikeCall(text string) bool {
	name := nameField().FindStringSubmatch(text)
	return name != nil && (argumentField().MatchString(text) || t.has(name[1]) && !strings.Contains(text, "}"))
}

// Parts of invalid JSON that repair corrects.
var (
	unquotedKey   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([{,]\s*)([A-Za-z_]\w*)(\s*:)`) })
	trailingComma = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`,(\s*[}\]])`) })
	literalOf     = sync.OnceValue(func() *strings.Replacer { return strings.NewReplacer("True", "true", "False", "false", "None", "null") })
)

// repair corrects mistakes of small models in JSON: single quotes, keys without quotes, the literals of Python, and
// commas before a closing bracket. If a quote is not closed, repair returns text unchanged.
func repair(text string) string {
	var out strings.Builder
	for rest := text; rest != ""; {
		n := strings.IndexAny(rest, `"'`)
		if n < 0 {
			n = len(rest)
		}
		out.WriteString(literalOf().Replace(trailingComma().ReplaceAllString(unquotedKey().ReplaceAllString(rest[:n], `$1"$2"$3`), "$1")))
		if rest = rest[n:]; rest == "" {
			break
		}
		end := 1
		for end < len(rest) && rest[end] != rest[0] {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return text
		}
		content := rest[1:end]
		if rest[0] == '\'' {
			content = strings.ReplaceAll(strings.ReplaceAll(content, `\'`, `'`), `"`, `\"`)
		}
		out.WriteString(`"` + content + `"`)
		rest = rest[end+1:]
	}
	return out.String()
}
