// Package refusal interprets the errors with which servers of language models refuse requests, for package
// agent/openai. Different servers report the same cause in different words, and some mention tools in errors
// with other causes. Therefore the package has a list of rules, with specific rules before general ones.
package refusal

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Meaning is the cause of a refusal, which determines the change of the request that may help.
type Meaning int

// The meanings.
const (
	Unknown       Meaning = iota // another cause, or a cause that no change of the request removes
	BadCall                      // the model wrote a call that its server could not parse; the same request may succeed
	TooLong                      // the request has more tokens than the model's context
	NoEffort                     // the model supports tools only with reasoning_effort none
	BadSchema                    // the server does not support the schema of a tool
	NewLimit                     // the server requires the name max_completion_tokens for max_tokens
	NoTemperature                // the model does not support a temperature
	NoThinking                   // the model does not support a reasoning effort
	NoOpaque                     // the server does not accept the reasoning fields of its earlier replies
	NoTools                      // the model or its server does not support tools
	LimitTooHigh                 // max_tokens is higher than the model's limit
)

// Refusal is the error of a server.
type Refusal struct {
	Status int    // HTTP status, or the status in the body of a successful response
	Code   string // such as "tool_use_failed"; may be empty
	Reason string // the server's message
}

// rule recognizes a meaning by the code, or by the reason.
type rule struct {
	meaning Meaning
	codes   string   // codes separated by "|", in lower case
	all     []string // groups of words separated by "|"; the reason must contain a word of each group
}

// rules returns the rules. The first rule that matches a refusal determines its meaning.
func rules() []rule {
	return []rule{
		{LimitTooHigh, "", []string{"max_tokens|max_completion_tokens|max_new_tokens|max_output_tokens", "too large|too high|must be less|less than or equal|at most|exceeds"}},
		{TooLong, "exceed_context_size_error|context_length_exceeded|request_too_large|context_window_exceeded", nil},
		{TooLong, "", []string{"context size|context length|context window|maximum context|context_length|n_ctx|model's context|context limit|max_model_len",
			"exceed|too long|maximum|larger|longer|limit|fit"}},
		{TooLong, "", []string{"prompt|input|request|message", "too long|too many tokens|too many input tokens|too large for model|request too large|exceeds the maximum number of tokens|reduce the length|reduce your message size|exceeds the limit of"}},
		{Unknown, "", []string{"thought_signature|reasoning_content", "missing"}},
		{Unknown, "", []string{"string too long|parallel_tool_calls"}},
		{BadCall, "tool_use_failed|malformed_function_call|unexpected_tool_call", nil},
		{BadCall, "", []string{"failed to call a function|tool call validation failed|failed to parse tool call|malformed function call|" +
			"invalid tool call|failed to parse input at pos|could not parse tool call|error parsing tool call|parameters for tool|failed to parse the tool call|did not match schema"}},
		{NoEffort, "", []string{"tool|function", "reasoning_effort|reasoning effort|reasoning.effort", "none"}},
		{BadSchema, "invalid_function_parameters|invalid_tool_schema|invalid_tool_parameters", nil},
		{BadSchema, "", []string{"schema", "tool|function", "invalid|not valid|missing|unsupported|not supported|must|unknown|unrecognized|cannot|should|expected|failed"}},
		{BadSchema, "", []string{"tools[|tools.|function_declarations[|functionDeclarations", "parameters|properties|items|required|additionalproperties|input_schema"}},
		{NoOpaque, "", []string{"reasoning_content|reasoning_details|extra_content|thought_signature",
			"unknown|unrecognized|unsupported|not supported|extra inputs|not permitted|unexpected|not allowed|no field"}},
		{NewLimit, "", []string{"max_completion_tokens"}},
		{NoTemperature, "", []string{"temperature"}},
		{NoThinking, "", []string{"does not support thinking|reasoning_effort|reasoning effort|think value|thinking is not supported"}},
		{NoTools, "", []string{"rendering prompt with jinja template"}}, // LM Studio; a template that cannot render tools is the usual cause
		{NoTools, "", []string{"tool|function call|functions", "support|require|jinja|not allowed|not enabled|not available|unavailable"}},
	}
}

// Meaning returns the meaning of the refusal. Without a matching rule, status 413 means TooLong. Statuses about
// keys and rate limits (401, 403, 429) mean Unknown, but rules apply to status 429 if a single request exceeds
// the limit.
func (r Refusal) Meaning() Meaning {
	if r.Status == 401 || r.Status == 403 || r.Status == 429 && !strings.Contains(strings.ToLower(r.Reason), "request too large") {
		return Unknown
	}
	reason, code := strings.ToLower(r.Reason), strings.ToLower(r.Code)
	has := func(group string) bool {
		return slices.ContainsFunc(strings.Split(group, "|"), func(word string) bool { return strings.Contains(reason, strings.ToLower(word)) })
	}
	for _, rule := range rules() {
		byCode := rule.codes != "" && code != "" && slices.Contains(strings.Split(rule.codes, "|"), code)
		if byCode || len(rule.all) > 0 && !slices.ContainsFunc(rule.all, func(group string) bool { return !has(group) }) {
			return rule.meaning
		}
	}
	if r.Status == 413 {
		return TooLong
	}
	return Unknown
}

// number matches a number of tokens: before the word "tokens", or after a word such as "limit".
var number = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(\d[\d,]*)\s*(?:\w+ )?tokens?\b|(?:tokens?|limit|requested|size|length|maximum|allowed)\D{0,20}?(\d[\d,]*)`)
})

// Tokens returns the number of tokens in a request that was too long, and the model's maximum, from the numbers
// of 100 and more in the reason. A single number is taken for the maximum. A number that the reason lacks is 0.
func (r Refusal) Tokens() (requested, limit int) {
	var found []int
	for _, match := range number().FindAllStringSubmatch(r.Reason, -1) {
		if n, err := strconv.Atoi(strings.ReplaceAll(match[1]+match[2], ",", "")); err == nil && n >= 100 {
			found = append(found, n)
		}
	}
	switch {
	case len(found) == 0:
		return 0, 0
	case len(found) == 1:
		return 0, found[0]
	}
	return slices.Max(found), slices.Min(found)
}

// index matches the index of a tool in a request, as in tools[16] and tools.16.
var index = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:tools|function_?declarations)(?:\[|\.)(\d+)`)
})

// Tool returns the tool that the reason mentions by its name or its index, or "". tools are the names of the
// request's tools in their order.
func (r Refusal) Tool(tools []string) string {
	for _, tool := range slices.SortedFunc(slices.Values(tools), func(a, b string) int { return len(b) - len(a) }) {
		if named := regexp.MustCompile("(?:['\"`]|(?:tool|function) )" + regexp.QuoteMeta(tool) + `(?:[^\w-]|$)`); named.MatchString(r.Reason) {
			return tool
		}
	}
	places := index().FindAllStringSubmatch(r.Reason, -1)
	if len(places) == 0 {
		return ""
	}
	n, err := strconv.Atoi(places[len(places)-1][1]) // the last index: 3 in tools[0].function_declarations[3]
	if err != nil || n >= len(tools) {
		return ""
	}
	return tools[n]
}
