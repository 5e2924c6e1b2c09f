package anthropic

import (
	"cmp"
	"encoding/base64"
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"perch/agent/thinker"
)

// Placeholders in a request.
const (
	hiddenPicture = "(There is a picture here, which you cannot see.)"
	emptyResult   = "(nothing)" // the API does not accept an empty result of a tool
)

// encode returns the request for a prompt, without the rejected options. It marks the tools and
// the system prompt for caching, because they seldom change.
func (e *Engine) encode(p thinker.Prompt, without rejections) sdk.MessageNewParams {
	params := sdk.MessageNewParams{Model: e.o.Model, MaxTokens: int64(p.MaxTokens(e.o.MaxTokens))}
	if p.System != "" {
		params.System = []sdk.TextBlockParam{{Text: p.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	}
	if t := p.Temperature(e.o.Temperature, maxTemperature); t != nil && without&rejectsTemperature == 0 {
		params.Temperature = param.NewOpt(*t)
	}
	if e.o.Effort != "" && without&rejectsEffort == 0 {
		params.OutputConfig.Effort = sdk.OutputConfigEffort(e.o.Effort)
	}
	params.Tools = encodeTools(p.Tools)
	calledTools := map[string]bool{}
	for _, m := range p.Messages {
		for _, c := range m.Calls {
			calledTools[c.Name] = true
		}
		message, toolsThen := e.encodeMessage(m)
		if len(message.Content) == 0 || len(params.Messages) == 0 && message.Role == sdk.MessageParamRoleAssistant {
			continue // skip an empty message, and messages of the assistant before the user's first message
		}
		if last := len(params.Messages) - 1; last >= 0 && params.Messages[last].Role == message.Role {
			// The API requires the results of all calls of a message in one message.
			params.Messages[last].Content = append(params.Messages[last].Content, message.Content...)
		} else {
			params.Messages = append(params.Messages, message)
		}
		if len(p.Tools) == 0 && toolsThen != nil {
			params.Tools = toolsThen
		}
	}
	if len(p.Tools) == 0 && len(calledTools) > 0 {
		// The API rejects calls in the messages of a request without tools. Thinking stays
		// valid only if the tools do not change, so offer the same ones and forbid their use.
		if len(params.Tools) == 0 {
			for name := range calledTools {
				params.Tools = append(params.Tools, sdk.ToolUnionParamOfTool(sdk.ToolInputSchemaParam{}, name))
			}
		}
		none := sdk.NewToolChoiceNoneParam()
		params.ToolChoice.OfNone = &none
	}
	return params
}

// thinkingMessage is a received message with thinking and tool calls. The Origin of its
// first call refers to it.
type thinkingMessage struct {
	message sdk.MessageParam
	tools   []sdk.ToolUnionParam // tools of the request that led to the message
	refused bool                 // the API has rejected the thinking, so it is not sent again
}

// thinkingOf returns the message with the thinking that led to calls. It returns nil if
// there was no thinking, or if the API has rejected it.
func thinkingOf(calls []thinker.ToolCall) *thinkingMessage {
	if len(calls) > 0 {
		if t, ok := calls[0].Origin.(*thinkingMessage); ok && !t.refused {
			return t
		}
	}
	return nil
}

// dropThinking marks all thinking in a prompt as refused, and reports whether it found any.
func dropThinking(p thinker.Prompt) (found bool) {
	for _, m := range p.Messages {
		if t := thinkingOf(m.Calls); t != nil {
			t.refused, found = true, true
		}
	}
	return found
}

// encodeMessage converts a message. For a message with thinking it also returns the tools
// of the request that led to the message.
func (e *Engine) encodeMessage(m thinker.Message) (sdk.MessageParam, []sdk.ToolUnionParam) {
	var blocks []sdk.ContentBlockParamUnion
	if m.Role == thinker.RoleTool {
		return sdk.NewUserMessage(sdk.NewToolResultBlock(m.CallID, cmp.Or(m.Text, emptyResult), m.Failed)), nil
	}
	if t := thinkingOf(m.Calls); t != nil {
		return t.message, t.tools
	}
	for _, picture := range m.Pictures {
		if e.o.Vision {
			blocks = append(blocks, sdk.NewImageBlockBase64(picture.Type, base64.StdEncoding.EncodeToString(picture.Data)))
		} else {
			blocks = append(blocks, sdk.NewTextBlock(hiddenPicture))
		}
	}
	if m.Text != "" {
		blocks = append(blocks, sdk.NewTextBlock(m.Text))
	}
	for _, c := range m.Calls {
		object := map[string]any{} // remains empty for invalid arguments; the result of such a call is an error
		if json.Unmarshal(c.Arguments, &object) != nil || object == nil {
			object = map[string]any{}
		}
		blocks = append(blocks, sdk.NewToolUseBlock(c.ID, object, c.Name))
	}
	if m.Role == thinker.RoleAssistant {
		return sdk.NewAssistantMessage(blocks...), nil
	}
	return sdk.NewUserMessage(blocks...), nil
}

// encodeTools converts tools, and marks the last one for caching: the cache then covers all.
func encodeTools(tools []thinker.Tool) []sdk.ToolUnionParam {
	var encoded []sdk.ToolUnionParam
	for _, t := range tools {
		tool := sdk.ToolParam{Name: t.Name, InputSchema: encodeSchema(t.Schema)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		encoded = append(encoded, sdk.ToolUnionParam{OfTool: &tool})
	}
	if len(encoded) > 0 {
		encoded[len(encoded)-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	return encoded
}

// encodeSchema converts a tool's schema without the top-level keys that the API rejects.
func encodeSchema(raw json.RawMessage) sdk.ToolInputSchemaParam {
	var s sdk.ToolInputSchemaParam
	fields := map[string]any{}
	if json.Unmarshal(raw, &fields) != nil {
		return s
	}
	for key, value := range fields {
		switch key {
		case "type", "oneOf", "anyOf", "allOf":
		case "properties":
			s.Properties = value
		case "required":
			names, _ := value.([]any)
			for _, name := range names {
				if text, ok := name.(string); ok {
					s.Required = append(s.Required, text)
				}
			}
		default:
			if s.ExtraFields == nil {
				s.ExtraFields = map[string]any{}
			}
			s.ExtraFields[key] = value
		}
	}
	return s
}
