package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// What a hook may bring, in bytes, and how long the appliance may take: a
// permission is held there until somebody answers.
const (
	mostHook         = 4 << 20
	mostVerdict      = 64 << 10
	stateWithin      = 4 * time.Second
	permissionWithin = 115 * time.Second
)

// sendHook passes on what an agent tells its hook, and prints what it is to be
// told: nothing, or the answer to a permission.
func sendHook(ctx context.Context, f *hooksFlags, stdin io.Reader, stdout io.Writer) error {
	within := map[string]time.Duration{"state": stateWithin, "permission": permissionWithin}
	if len(f.words) != 1 || within[f.words[0]] == 0 {
		return errors.New("it sends state or permission")
	}
	what := f.words[0]
	body, err := io.ReadAll(io.LimitReader(stdin, mostHook+1))
	if err != nil {
		return fmt.Errorf("read what the agent tells: %w", err)
	}
	if len(body) > mostHook {
		return fmt.Errorf("the agent tells more than %d bytes", mostHook)
	}
	if what == "state" {
		body = brief(body)
	}
	ctx, cancel := context.WithTimeout(ctx, within[what])
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url.String()+"/"+what, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the address %q cannot be used: %w", f.url, err)
	}
	r.Header.Set("Content-Type", "application/json")
	if f.key != "" {
		r.Header.Set("Authorization", "Bearer "+f.key)
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a key goes nowhere else
	}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("the appliance does not answer: %w", errors.Unwrap(err))
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostVerdict))
	switch {
	case err != nil:
		return fmt.Errorf("the answer broke off: %w", err)
	case answer.StatusCode >= 300:
		return fmt.Errorf("the appliance answered %s: %s", answer.Status, refusal(text))
	case what == "permission" && json.Valid(text):
		_, err = stdout.Write(text)
	}
	return err
}

// brief is of what an agent tells its hook only what a state is made of: what
// people say and what files hold stays where it is.
func brief(body []byte) []byte {
	var whole map[string]json.RawMessage
	if json.Unmarshal(body, &whole) != nil {
		return body // the appliance says what is wrong with it
	}
	kept := map[string]json.RawMessage{}
	for _, name := range []string{"hook_event_name", "session_id", "tool_name"} {
		if v, there := whole[name]; there {
			kept[name] = v
		}
	}
	return encoded(kept)
}

// refusal is what an error of the appliance says.
func refusal(text []byte) string {
	var told struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &told) == nil && told.Error.Message != "" {
		return told.Error.Message
	}
	return "it does not say why"
}
