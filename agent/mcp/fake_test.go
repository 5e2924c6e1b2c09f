package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// serveFake is a server that writes the protocol without the SDK. is selects how the server
// deviates from a normal one.
func serveFake(is string) {
	out := bufio.NewWriter(os.Stdout)
	say := func(text string) {
		if is == "split" {
			for _, b := range []byte(text) {
				_, _ = os.Stdout.Write([]byte{b})
			}
			return
		}
		_, _ = out.WriteString(text)
		_ = out.Flush()
	}
	switch is {
	case "noise":
		for {
			_, _ = io.WriteString(os.Stdout, "y\n")
		}
	case "mute":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	case "first words":
		fmt.Println("usage: sesame-open FILE")
		os.Exit(2)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Cursor string
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || len(m.ID) == 0 {
			continue
		}
		answer := func(result string) {
			say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result))
		}
		if is == "garbage" {
			say("Listening...\n\n{\"not\":\"of the protocol\"}\n[]\n\xff\xfe\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard_of\"}\n")
		}
		switch m.Method {
		case "initialize":
			if is == "elder" {
				say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"too new for sk-live-canary-0123456789"}}`+"\n", m.ID))
				continue
			}
			answer(`{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)
		case "tools/list":
			fakeList(is, m.Params.Cursor, answer)
		case "tools/call":
			fakeCall(is, string(m.ID), say, answer)
		default:
			answer(`{}`)
		}
	}
}

func fakeList(is, cursor string, answer func(string)) {
	if is != "many" {
		answer(`{"tools":[{"name":"do","inputSchema":{"type":"object"}}]}`)
		return
	}
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprintf(`{"name":"t%s_%d","description":%q,"inputSchema":{"type":"object"}}`, cursor, i, strings.Repeat("x", 9000)))
	}
	all = append(all, `{"name":"t_0","inputSchema":{}}`, `{"name":"bad\u0007","inputSchema":{}}`, `{"name":"","inputSchema":{}}`,
		`{"name":"vast`+cursor+`","inputSchema":{"x":"`+strings.Repeat("x", 40<<10)+`"}}`, `null`)
	answer(fmt.Sprintf(`{"tools":[%s],"nextCursor":"%sn"}`, strings.Join(all, ","), cursor))
}

func fakeCall(is, id string, say, answer func(string)) {
	const done = `{"content":[{"type":"text","text":"done"}]}`
	switch is {
	case "huge", "huge the other way round":
		if is == "huge" {
			say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"`)
		} else {
			say(`{"result":{"content":[{"type":"text","text":"`)
		}
		piece := strings.Repeat("x", 1<<20)
		for range 100 {
			say(piece)
		}
		if is == "huge" {
			say("\"}]}}\n")
		} else {
			say(`"}]},"jsonrpc":"2.0","id":` + id + "}\n")
		}
	case "silent":
	case "curious": // sends requests, and does not read the responses
		for i := range 1 << 30 {
			if _, err := fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`+"\n", i); err != nil {
				os.Exit(1)
			}
		}
	case "cut":
		say(`{"jsonrpc":"2.0","id":` + id + `,"resu`)
		os.Exit(1)
	case "batch":
		say(`[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}},{"jsonrpc":"2.0","id":` + id +
			`,"result":` + done + `}]` + "\n")
	case "long":
		answer(`{"content":[{"type":"text","text":"` + strings.Repeat("ä", 1<<20) + `"}]}`)
	default:
		answer(done)
	}
}
