package refusal

import "testing"

// TestMeaning tests errors that users of the servers have reported.
func TestMeaning(t *testing.T) {
	for _, c := range []struct {
		status       int
		code, reason string
		want         Meaning
	}{
		// Groq
		{400, "tool_use_failed", "tool call validation failed: parameters for tool T did not match schema: errors: [additionalProperties 'level' not allowed]", BadCall},
		{400, "tool_use_failed", "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.", BadCall},
		{400, "", "Failed to call a function. Please adjust your prompt.", BadCall},
		{413, "rate_limit_exceeded", "Request too large for model `llama-3.1-8b-instant` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 7500, please reduce your message size and try again.", TooLong},
		{429, "rate_limit_exceeded", "Rate limit reached for model M on tokens per minute (TPM): Limit 6000, Used 5900, Requested 700. Please try again in 5s.", Unknown},
		{400, "", "invalid JSON schema for tool X, tools[16].function.parameters: `required` present but `properties` is missing", BadSchema},
		// OpenAI
		{400, "invalid_function_parameters", "Invalid schema for function 'X': array schema missing items.", BadSchema},
		{400, "", "Invalid schema for function 'X': In context=('properties', 'q'), array schema missing items.", BadSchema},
		{400, "", "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead, or set reasoning_effort to 'none'.", NoEffort},
		{400, "context_length_exceeded", "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens. Please reduce the length of the messages.", TooLong},
		{400, "unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", NewLimit},
		{400, "unsupported_value", "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.", NoTemperature},
		{400, "unsupported_parameter", "Unsupported parameter: 'reasoning_effort' is not supported with this model.", NoThinking},
		// llama.cpp
		{400, "exceed_context_size_error", "request (1870 tokens) exceeds the available context size (1800 tokens), try increasing it", TooLong},
		{400, "", "the request exceeds the available context size. try increasing the context size or enable context shift", TooLong},
		{500, "", "tools param requires --jinja flag", NoTools},
		{500, "", "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]", BadCall},
		{400, "", "max_tokens is too large: 4000. This model's maximum context length is 2048 tokens and your request has 500 input tokens (4000 > 2048 - 500).", LimitTooHigh},
		{400, "", "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model", LimitTooHigh},
		// vLLM, Ollama, OpenRouter, LM Studio, Mistral, Gemini, DeepSeek, Anthropic
		{400, "BadRequestError", "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set", NoTools},
		{400, "", "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens", TooLong},
		{400, "", "registry.ollama.ai/library/gemma:2b does not support tools", NoTools},
		{400, "", "\"gemma\" does not support thinking", NoThinking},
		{404, "", "No endpoints found that support tool use. Try disabling \"T\".", NoTools},
		{400, "", "Error rendering prompt with jinja template: \"Cannot call something that is not a function: got UndefinedValue\"", NoTools},
		{400, "", "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", TooLong},
		{400, "", "* GenerateContentRequest.tools[0].function_declarations[3].parameters.properties[q].items: missing field.", BadSchema},
		{400, "", "The input token count (40000) exceeds the maximum number of tokens allowed (32768).", TooLong},
		{400, "", "prompt is too long: 210000 tokens > 200000 maximum", TooLong},
		{400, "", "tools.3.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12", BadSchema},
		{400, "", "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough; the prompt exceeds it.", TooLong},
		{400, "", "Function calling is not enabled for this model", NoTools},
		{400, "", "messages.3.reasoning_content: Extra inputs are not permitted", NoOpaque},
		{400, "", "Missing `reasoning_content` field in the assistant message at message index 3.", Unknown},
		// Others
		{401, "", "tools are not supported for this key", Unknown},
		{400, "", "The model M does not exist", Unknown},
		{500, "", "Internal Server Error", Unknown},
		{413, "", "", TooLong},
	} {
		if got := (Refusal{c.status, c.code, c.reason}).Meaning(); got != c.want {
			t.Errorf("%d %s %q means %d, want %d", c.status, c.code, c.reason, got, c.want)
		}
	}
}

func TestTokens(t *testing.T) {
	for reason, want := range map[string][2]int{
		"request (1870 tokens) exceeds the available context size (1800 tokens)":                                                                                    {1870, 1800},
		"This model's maximum context length is 4096 tokens. However, your messages resulted in 5,000 tokens.":                                                      {5000, 4096},
		"Request too large for model `llama-3.1-8b-instant` in organization `org_01jabc4500` on tokens per minute (TPM): Limit 6000, Requested 7500, please reduce": {7500, 6000},
		"the request exceeds the available context size":                                                                                                            {},
		"the model is loaded with context length of only 4096 tokens":                                                                                               {0, 4096},
	} {
		if asked, limit := (Refusal{Reason: reason}).Tokens(); asked != want[0] || limit != want[1] {
			t.Errorf("%q: %d of %d", reason, asked, limit)
		}
	}
}

func TestTool(t *testing.T) {
	tools := []string{"X", "say_later"}
	for reason, want := range map[string]string{
		"Invalid schema for function 'X': array schema missing items.":   "X",
		"invalid JSON schema for tool X, tools[16].function.parameters":  "X",
		"Invalid schema for function 'say_later_on': X is wrong":         "",
		"* tools[0].function_declarations[1].parameters: missing field.": "say_later",
		"tools.1.custom.input_schema: JSON schema is invalid":            "say_later",
		"tools[7].function.parameters is invalid":                        "",
	} {
		if got := (Refusal{Reason: reason}).Tool(tools); got != want {
			t.Errorf("%q is about %q", reason, got)
		}
	}
}
