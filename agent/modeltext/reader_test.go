package modeltext

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

var offered = []Tool{
	{"self_audio_speaker_set_volume", json.RawMessage(`{"type":"object","properties":{"volume":{"type":"integer"}}}`)},
	{"say_later", json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},"loud":{"type":"boolean"}}}`)},
	{"T", json.RawMessage(`{"type":"object","properties":{"volume":{"type":"integer"}}}`)},
}

// cases are texts of models, the text in them for people, and the calls in them. A "?" after a name means that
// the tool is not offered.
var cases = []struct{ text, spoken, calls string }{
	{"Hello there.", "Hello there.", ""},
	{"3 < 4, and 5 > 4.", "3 < 4, and 5 > 4.", ""},
	{"[happy] Hello [anim:wave] you", "[happy] Hello [anim:wave] you", ""},
	{"[REMEMBER: he likes tea] Fine.", "[REMEMBER: he likes tea] Fine.", ""},
	{"Take **this** and `that`.", "Take **this** and `that`.", ""},
	{"<b>bold</b>", "<b>bold</b>", ""},

	// Calls, bare and in marks.
	{`{"name": "T", "arguments": {"volume": 40}}`, "", `T{"volume":40}`},
	{"Okay, I will do that.\n" + `{"name": "T", "arguments": {"volume": 40}}`, "Okay, I will do that.\n", `T{"volume":40}`},
	{`Okay. {"name": "T", "parameters": {"volume": 40}} Done.`, "Okay.  Done.", `T{"volume":40}`},
	{`[{"name": "T", "arguments": {"volume": 40}}, {"name": "T", "arguments": {"volume": 41}}]`, "", `T{"volume":40} T{"volume":41}`},
	{`{"type": "function", "function": {"name": "T", "arguments": "{\"volume\": 40}"}}`, "", `T{"volume":40}`},
	{`{"tool_calls": [{"id": "1", "type": "function", "function": {"name": "T", "arguments": "{\"volume\": 40}"}}]}`, "", `T{"volume":40}`},
	{`{"tool": "T", "args": {"volume": 40}}`, "", `T{"volume":40}`},
	{`{"name": "other", "arguments": {"a": 1}}`, "", `other?{"a":1}`},
	{`{"answer": 42}`, `{"answer": 42}`, ""},
	{`<tool_call>{"name": "T", "arguments": {"volume": 40}}</tool_call>`, "", `T{"volume":40}`},
	{"<tool_call>\n{\"name\": \"T\", \"arguments\": {\"volume\": 40}}\n</tool_call>\n<tool_call>\n{\"name\": \"T\", \"arguments\": {\"volume\": 41}}\n</tool_call>", "\n", `T{"volume":40} T{"volume":41}`},
	{`<tool_call>{"name": "T", "arguments": {"volume": 40}}`, "", `T{"volume":40}`},
	{`<tools>{"name": "T", "arguments": {"volume": 40}}</tools> Done.`, " Done.", `T{"volume":40}`},
	{`<TOOLCALL>[{"name": "T", "arguments": {"volume": 40}}]</TOOLCALL>`, "", `T{"volume":40}`},
	{`<function_call>{"name": "T", "arguments": {"volume": 40}}</function_call>`, "", `T{"volume":40}`},
	{"```json\n{\"name\": \"T\", \"arguments\": {\"volume\": 40}}\n```", "", `T{"volume":40}`},
	{"Sure.\n```tool_code\nprint(default_api.T(volume=40))\n```\nDone.", "Sure.\n\nDone.", `T{"volume":40}`},
	{"```tool_call\n{\"name\": \"T\", \"arguments\": {\"volume\": 40}}\n```", "", `T{"volume":40}`},
	{"```python\nx = 1\n```", "```python\nx = 1\n```", ""},
	{"```json\n{\"a\": 1}\n```", "```json\n{\"a\": 1}\n```", ""},
	{"T(volume=40)", "", `T{"volume":40}`},
	{"[T(volume=40), say_later(text=\"a, b (c)\", loud=True)]", "", `T{"volume":40} say_later{"loud":true,"text":"a, b (c)"}`},
	{"say_later is a tool.", "say_later is a tool.", ""},
	{"<function=T><parameter=volume>40</parameter></function>", "", `T{"volume":40}`},
	{"<tool_call>\n<function=T>\n<parameter=volume>\n40\n</parameter>\n</function>\n</tool_call>", "", `T{"volume":40}`},
	{`<invoke name="T"><parameter name="volume">40</parameter></invoke>`, "", `T{"volume":40}`},
	{`<invoke name="T"><parameter name="volume">40`, "", `T{"volume":40}`},
	{`<function_calls><invoke name="T"><parameter name="volume">40</parameter></invoke><invoke name="say_later"><parameter name="text">7</parameter></invoke></function_calls>`,
		"", `T{"volume":40} say_later{"text":"7"}`},
	{"<minimax:tool_call><invoke name=\"T\"><parameter name=\"volume\">40</parameter></invoke></minimax:tool_call>", "", `T{"volume":40}`},
	{"<tool_call>T<arg_key>volume</arg_key><arg_value>40</arg_value></tool_call>", "", `T{"volume":40}`},
	{"<tool_call>T\n<arg_key>volume</arg_key>\n<arg_value>40</arg_value>\n</tool_call>Done.", "Done.", `T{"volume":40}`},
	{"<T><volume>40</volume></T>", "", `T{"volume":40}`},
	{"<use_tool><tool_name>T</tool_name><volume>40</volume></use_tool>", "", `T{"volume":40}`},
	{"<tool_use><name>T</name><arguments>{\"volume\": 40}</arguments></tool_use>", "", `T{"volume":40}`},
	{`<|python_tag|>{"type": "function", "name": "T", "parameters": {"volume": 40}}<|eom_id|>`, "", `T{"volume":40}`},
	{`<|python_tag|>T(volume=40)`, "", `T{"volume":40}`},
	{`[TOOL_CALLS][{"name": "T", "arguments": {"volume": 40}}]`, "", `T{"volume":40}`},
	{`[TOOL_CALLS]T[ARGS]{"volume": 40}</s>`, "", `T{"volume":40}`},
	{"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>T\n```json\n{\"volume\": 40}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", `T{"volume":40}`},
	{"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>T<｜tool▁sep｜>{\"volume\": 40}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>", "", `T{"volume":40}`},
	{"<|tool_calls_section_begin|><|tool_call_begin|>functions.T:0<|tool_call_argument_begin|>{\"volume\": 40}<|tool_call_end|><|tool_calls_section_end|>", "", `T{"volume":40}`},
	{"<|tool_call>call:T{volume:40}<tool_call|>", "", `T{"volume":40}`},
	{`<|tool_call|>[{"name": "T", "arguments": {"volume": 40}}]<|/tool_call|>`, "", `T{"volume":40}`},
	{`<tool_response>{"ok": true}</tool_response>It is done.`, "It is done.", ""},
	{`<|channel|>commentary to=functions.T <|constrain|>json<|message|>{"volume": 40}<|call|>`, "", `T{"volume":40}`},
	{`<|channel|>analysis<|message|>They want it louder.<|end|><|start|>assistant<|channel|>commentary to=functions.T<|message|>{"volume": 40}<|call|>`, "", `T{"volume":40}`},
	{`<|start|>assistant<|channel|>final<|message|>Hello.<|return|>`, "Hello.", ""},
	{`<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.<|return|>`, "Hello.", ""},
	{"<|channel>thought\nThey greet me.\n<channel|>Hello.", "Hello.", ""},

	// Calls with mistakes, attributes and namespaces.
	{`{"name": "T", "arguments": {"volume": 40,}}`, "", `T{"volume":40}`},
	{`{'name': 'T', 'arguments': {'volume': 40, 'loud': True}}`, "", `T{"loud":true,"volume":40}`},
	{`{name: "T", arguments: {volume: 40}}`, "", `T{"volume":40}`},
	{`<tool_call>{"name": "T", "arguments": {"volume": 40</tool_call>`, "", `??`},
	{`Okay. {"name": "T", "argum`, "Okay. ", `??`},
	{`{"name": "T", "description": "sets the volume", "parameters": {"type": "object"}}`, `{"name": "T", "description": "sets the volume", "parameters": {"type": "object"}}`, ""},
	{`<invoke name="T"><parameter name="volume" type="integer">40</parameter></invoke>`, "", `T{"volume":40}`},
	{`<｜DSML｜function_calls><｜DSML｜invoke name="T"><｜DSML｜parameter name="volume" string="false">40</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>`, "", `T{"volume":40}`},
	{`<invoke name="T"><unknown kind="x">40</unknown></invoke>`, "", `??`},
	{`<|start|>assistant to=functions.T<|channel|>commentary<|message|>{"volume": 40}<|call|>`, "", `T{"volume":40}`},
	{` to=functions.T<|channel|>commentary<|constrain|>json<|message|>{"volume": 40}<|call|>`, "", `T{"volume":40}`},
	{`<|channel|>analysis<|message|>Hm.<|end|><|start|>functions.T to=assistant<|channel|>commentary<|message|>{"ok": true}<|end|><|start|>assistant<|channel|>final<|message|>Done.`, "Done.", ""},
	{"{ is a bracket, and [ is one. </s>Then", "{ is a bracket, and [ is one. Then", ""},

	// Thoughts.
	{"<think>Hm.</think>Hello.", "Hello.", ""},
	{"<Think>Hm.</Think>Hello.", "Hello.", ""},
	{"<thinking>Hm. 3 < 4</thinking>Hello.", "Hello.", ""},
	{"<thought>Hm.</thought>Hello.", "Hello.", ""},
	{"<reasoning>Hm.</reasoning>Hello.", "Hello.", ""},
	{"<think type=\"deep\">Hm.</think>Hello.", "Hello.", ""},
	{"◁think▷Hm.◁/think▷Hello.", "Hello.", ""},
	{"<|begin_of_thought|>Hm.<|end_of_thought|><|begin_of_solution|>Hello.<|end_of_solution|>", "Hello.", ""},
	{"[THINK]Hm.[/THINK]Hello.", "Hello.", ""},
	{"<seed:think>Hm.</seed:think>Hello.", "Hello.", ""},
	{"<|thinking|>Hm.<|/thinking|>Hello.", "Hello.", ""},
	{"<inner_monologue>Hm.</inner_monologue>Hello.", "Hello.", ""},
	{"<scratch_pad>Hm.</scratch_pad>Hello.", "Hello.", ""},
	{"<antThinking>Hm.</antThinking>Hello.", "Hello.", ""},
	{"analysisWe need to greet.assistantfinalHello.", "Hello.", ""},
	{`analysisWe need T.assistantcommentary to=functions.T json{"volume": 40}`, "", `T{"volume":40}`},
	{"analysis of this is hard.", "analysis of this is hard.", ""},
	{"<think>Hm.", "", ""},
	{"Hello.</think> You.", "Hello. You.", ""},

	// Control tokens.
	{"Hello there.<|im_end|>", "Hello there.", ""},
	{"Hello there.<|eot_id|>", "Hello there.", ""},
	{"Hello there.</s>", "Hello there.", ""},
	{"<s>Hello there.<end_of_turn>", "Hello there.", ""},
	{"<|im_start|>assistant\nHello there.<|im_end|>", "Hello there.", ""},
	{"<|start_header_id|>assistant<|end_header_id|>\n\nHello there.<|eot_id|>", "\n\nHello there.", ""},
	{"[INST] Hi [/INST]Hello there.", " Hi Hello there.", ""},
	{"<|endoftext|>", "", ""},

	// A model that continues with further messages after its own message.
	{"Hello.<|im_end|>\n<|im_start|>user\nAnd you?<|im_end|>\n<|im_start|>assistant\nFine.<|im_end|>", "Hello.\n\nFine.", ""},
	{"Hello.<|user|>And you?<|assistant|>Fine.", "Hello.Fine.", ""},
	{"Hello.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd you?", "Hello.", ""},
	{"<|assistant|>Hello there.\nYou.", "Hello there.\nYou.", ""},
}

func (c Call) String() string {
	if !c.Offered {
		c.Name += "?"
	}
	return c.Name + string(c.Arguments)
}

func TestReader(t *testing.T) {
	for _, c := range cases {
		for _, size := range []int{len(c.text), 1, 3, 7} {
			r := NewReader(offered, false)
			var spoken strings.Builder
			for rest := c.text; rest != ""; {
				n := min(size, len(rest))
				spoken.WriteString(r.Write(rest[:n]))
				rest = rest[n:]
			}
			spoken.WriteString(r.Flush(false))
			calls := strings.Trim(fmt.Sprint(r.Calls()), "[]")
			if spoken.String() != c.spoken || calls != c.calls {
				t.Errorf("%q in pieces of %d:\nspoken %q, want %q\ncalls  %s, want %s", c.text, size, spoken.String(), c.spoken, calls, c.calls)
				break
			}
		}
	}
}

// TestLongText reads texts of a megabyte with many unclosed brackets. Reading them in quadratic time would take
// minutes.
func TestLongText(t *testing.T) {
	for _, piece := range []string{"{", "[{", "<", "`", "{\"", "\na", "T(", "<a ", "[T("} {
		text := strings.Repeat(piece, 1<<20/len(piece))
		r := NewReader(offered, false)
		if spoken := r.Write(text) + r.Flush(false); spoken != text {
			t.Errorf("%q, repeated, becomes %d bytes of %d", piece, len(spoken), len(text))
		}
	}
}

// FuzzReader tests that the result does not depend on how a text is split, and that a text without
// marks passes through unchanged.
func FuzzReader(f *testing.F) {
	for _, c := range cases {
		f.Add(c.text, uint8(3), false)
		f.Add(c.text, uint8(1), true)
	}
	f.Fuzz(func(t *testing.T, text string, size uint8, thinking bool) {
		read := func(n int) (string, string) {
			r := NewReader(offered, thinking)
			var spoken strings.Builder
			for rest := text; rest != ""; {
				n := min(max(n, 1), len(rest))
				spoken.WriteString(r.Write(rest[:n]))
				rest = rest[n:]
			}
			return spoken.String() + r.Flush(false), fmt.Sprint(r.Calls())
		}
		whole, calls := read(len(text))
		if spoken, c := read(int(size)); spoken != whole || c != calls {
			t.Errorf("%q: %q and %q, %s and %s", text, spoken, whole, c, calls)
		}
		begin := strings.TrimLeft(text, " ")
		harmony := strings.HasPrefix(begin, "analysis") || strings.HasPrefix(begin, "to=functions.") // a Harmony message without control tokens
		if !strings.ContainsAny(text, "<[{`◁(") && !harmony && utf8.ValidString(text) && !thinking && whole != text {
			t.Errorf("%q: %q", text, whole)
		}
	})
}
