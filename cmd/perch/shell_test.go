package main

import (
	"strings"
	"testing"

	"perch/command/commandtest"
)

// TestBashCompletes checks the completion of commands, options, values, and IDs and names of robots.
func TestBashCompletes(t *testing.T) {
	bin := t.TempDir()
	commandtest.WriteProgram(t, bin, "perch", `if [ "$2" = list ]; then
	echo '{"robots":[{"id":"a0b1c2d3e4f5"},{"id":"a0b1c2d3e4f6","name":"kitchen"}]}'
	exit
fi`)
	const ids = "a0b1c2d3e4f5 a0b1c2d3e4f6"
	for line, want := range map[string]string{
		"perch ":                                      "backup character check-config completion diary doctor health help https memory notification open relay restore robot serve set skill status unset version",
		"perch re":                                    "relay restore",
		"perch set mqtt.us":                           "mqtt.user",
		"perch unset speech.si":                       "speech.silence",
		"perch set mqtt.user ":                        "",
		"perch nothing ":                              "",
		"perch doctor --":                             "--config --data --help --json --show-secrets",
		"perch serve --log-level ":                    "debug error info warn",
		"perch serve --log-level w":                   "warn",
		"perch notification send --urgency=h":         "high",
		"perch notification send --urgency=":          "high low normal",
		"perch notification send --robot a":           ids,
		"perch notification ":                         "list send",
		"perch diary ":                                "list verify",
		"perch relay ":                                "list try",
		"perch character ":                            "card check export import list remove use",
		"perch memory ":                               "add forget list show stats",
		"perch notification send --url ":              "",
		"perch robot say ":                            ids + " kitchen",
		"perch robot say --url http://p a0b1c2d3e4f5": "a0b1c2d3e4f5",
		"perch robot say a0b1c2d3e4f5 ":               "",
		"perch robot forget a0b1c2d3e4f6":             "a0b1c2d3e4f6",
		"perch robot adopt ":                          ids + " kitchen",
		"perch robot ":                                "add adopt forget gesture list play reboot rename say set show token",
		"perch robot fo":                              "forget",
		"perch robot rename k":                        "kitchen",
		"perch completion ":                           "bash fish zsh",
	} {
		if got := strings.Join(commandtest.Complete(t, commands(), bin, line), " "); got != want {
			t.Errorf("%s<tab> offers %q, want %q", line, got, want)
		}
	}
}
