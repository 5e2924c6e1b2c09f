package anthropic

import (
	"cmp"
	"encoding/base64"
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"perch/agent/thinker"
)

// Texts for content that a message may not leave empty.
const (
	unseen  = "(There is a picture here, which you cannot see.)"
	nothing = "(nothing)"
)

// encode returns the request for a prompt. The tools and the system prompt, which
// change least, are marked for caching.
func (e *Engine) encode(p thinker.Prompt, without rejections) sdk.MessageNewParams {
	params := sdk.MessageNewParams{Model: e.o.Model, MaxTokens: int64(p.MaxTokens(e.o.MaxTokens))}
	if p.System != "" {
		params.System = []sdk.TextBlockParam{{Text: p.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	}
	if t := p.Temperature(e.o.Temperature, highest); t != nil && without&rejectsTemperature == 0 {
		params.Temperature = param.NewOpt(*t)
	}
	if e.o.Effort != "" && without&rejectsEffort == 0 {
		params.OutputConfig.Effort = sdk.OutputConfigEffort(e.o.Effort)
	}
	params.Tools = offered(p.Tools)
	called := map[string]bool{}
	for _, m := range p.Messages {
		for _, c := range m.Calls {
			called[c.Name] = true
		}
		message, before := e.message(m)
		if len(message.Content) == 0 || len(params.Messages) == 0 && message.Role == sdk.MessageParamRoleAssistant {
			continue // the first message must be the user's
		}
		if last := len(params.Messages) - 1; last >= 0 && params.Messages[last].Role == message.Role {
			// The results of all calls of a message must be in one message.
			params.Messages[last].Content = append(params.Messages[last].Content, message.Content...)
		} else {
			params.Messages = append(params.Messages, message)
		}
		if len(p.Tools) == 0 && before != nil {
			params.Tools = before
		}
	}
	if len(p.Tools) == 0 && len(called) > 0 {
		// Calls are not allowed in a request without tools. Offering the same tools and
		// forbidding their use keeps the thinking valid.
		if len(params.Tools) == 0 {
			for name := range called {
				params.Tools = append(params.Tools, sdk.ToolUnionParamOfTool(sdk.ToolInputSchemaParam{}, name))
			}
		}
		none := sdk.NewToolChoiceNoneParam()
		params.ToolChoice.OfNone = &none
	}
	return params
}

// thinking is a message with thinking and calls as it was received: the Origin of its first
// call.
type thinking struct {
	message sdk.MessageParam
	tools   []sdk.ToolUnionParam // that the model was offered
	refused bool                 // the API does not accept it any more
}

// thinkingOf returns the thinking that led to calls, or nil.
func thinkingOf(calls []thinker.ToolCall) *thinking {
	if len(calls) > 0 {
		if t, ok := calls[0].Origin.(*thinking); ok && !t.refused {
			return t
		}
	}
	return nil
}

// refuseThinking leaves the thinking of a prompt out from now on, and reports whether it
// had any.
func refuseThinking(p thinker.Prompt) (had bool) {
	for _, m := range p.Messages {
		if t := thinkingOf(m.Calls); t != nil {
			t.refused, had = true, true
		}
	}
	return had
}

// message converts a message, and returns the tools that were offered with it if it has
// thinking.
func (e *Engine) message(m thinker.Message) (sdk.MessageParam, []sdk.ToolUnionParam) {
	var blocks []sdk.ContentBlockParamUnion
	if m.Role == thinker.RoleTool {
		return sdk.NewUserMessage(sdk.NewToolResultBlock(m.CallID, cmp.Or(m.Text, nothing), m.Failed)), nil
	}
	if t := thinkingOf(m.Calls); t != nil {
		return t.message, t.tools
	}
	for _, picture := range m.Pictures {
		if e.o.Vision {
			blocks = append(blocks, sdk.NewImageBlockBase64(picture.Type, base64.StdEncoding.EncodeToString(picture.Data)))
		} else {
			blocks = append(blocks, sdk.NewTextBlock(unseen))
		}
	}
	if m.Text != "" {
		blocks = append(blocks, sdk.NewTextBlock(m.Text))
	}
	for _, c := range m.Calls {
		object := map[string]any{} // invalid arguments were already answered by an error
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

func offered(tools []thinker.Tool) []sdk.ToolUnionParam {
	var all []sdk.ToolUnionParam
	for _, t := range tools {
		tool := sdk.ToolParam{Name: t.Name, InputSchema: schema(t.Schema)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		all = append(all, sdk.ToolUnionParam{OfTool: &tool})
	}
	if len(all) > 0 {
		all[len(all)-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	return all
}

// schema returns a tool's schema without top-level keys that the API rejects.
func schema(raw json.RawMessage) sdk.ToolInputSchemaParam {
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
