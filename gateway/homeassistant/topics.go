package homeassistant

import (
	"fmt"
	"strings"

	"perch/language"
)

// birth is where Home Assistant publishes that it is there.
func (n names) birth() string { return n.Prefix + "/status" }

// commands are the topic filters of commands for robots and of requests for the bridge.
func (n names) commands() []string {
	return []string{n.Base + "/+/+/set", n.bridgeTopic("request/+")}
}

// setTopic takes "<base>/<robot>/<thing>/set" apart.
func (n names) setTopic(topic string) (robot, thing string, ok bool) {
	rest, below := strings.CutPrefix(topic, n.Base+"/")
	rest, set := strings.CutSuffix(rest, "/set")
	robot, thing, ok = strings.Cut(rest, "/")
	return robot, thing, below && set && ok && !strings.Contains(thing, "/")
}

// requestTopic takes "<base>/bridge/request/<verb>" apart.
func (n names) requestTopic(topic string) (verb string, ok bool) {
	verb, ok = strings.CutPrefix(topic, n.bridgeTopic("request/"))
	return verb, ok && verb != "" && !strings.Contains(verb, "/")
}

// checkTopic lets through what topics can begin with.
func checkTopic(key, topic string) error {
	letters := strings.Trim(topic, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/") == ""
	slashes := !strings.HasPrefix(topic, "/") && !strings.HasSuffix(topic, "/") && !strings.Contains(topic, "//")
	if topic == "" || len(topic) > 64 || !letters || !slashes {
		return language.OfKey(key, fmt.Errorf("%.80q has to be of 1 to 64 letters, digits, - and _, and / between them", topic))
	}
	return nil
}
